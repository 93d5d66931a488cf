import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const LOOPBACK_HOSTS = new Set(['127.0.0.1', '::1', 'localhost']);
const TRUE_WORDS = new Set(['1', 'true', 'yes', 'on']);
const FALSE_WORDS = new Set(['', '0', 'false', 'no', 'off']);
const QUEUES_SCHEMA = 1;

/** What is wrong with the settings, as sentences for whoever starts the board. */
export class SettingsError extends Error {
  /** @param {string[]} problems one sentence each */
  constructor(problems) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/**
 * Reads every setting of the board once, and reports all problems together.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {{host: string, port: number, user: string, password: string, insecure: boolean,
 *   readOnly: boolean, readyFile: string, redis: RedisTarget, prefix: string, queues: QueueRow[]}}
 * @throws {SettingsError}
 */
export function readSettings(env) {
  const problems = [];
  const attempt = (read) => {
    try {
      return read();
    } catch (error) {
      problems.push(error.message);
      return undefined;
    }
  };
  const host = env.BULL_BOARD_HOST || '127.0.0.1';
  const password = env.BULL_BOARD_PASSWORD ?? '';
  const insecure = attempt(() => readSwitch(env, 'BULL_BOARD_INSECURE'));
  const queuesFile =
    env.BULL_BOARD_QUEUES_FILE || fileURLToPath(new URL('../queues.json', import.meta.url));
  const table = attempt(() => readQueues(queuesFile));
  const settings = {
    host,
    port: attempt(() => readPort(env.BULL_BOARD_PORT || '3999')),
    user: env.BULL_BOARD_USER || 'admin',
    password,
    insecure,
    readOnly: attempt(() => readSwitch(env, 'BULL_BOARD_READ_ONLY')),
    readyFile: env.BULL_BOARD_READY_FILE || '',
    redis: attempt(() => readRedisTarget(env)),
    prefix: env.DRIVEFEED_QUEUE_PREFIX || table?.prefix || 'drivefeed',
    queues: table?.queues ?? [],
  };
  if (settings.user.includes(':')) {
    problems.push('BULL_BOARD_USER contains a colon, which basic auth cannot carry. Choose another name.');
  }
  if (!password) {
    problems.push(...problemsWithoutPassword(host, insecure));
  }
  if (problems.length > 0) {
    throw new SettingsError(problems);
  }
  return settings;
}

/** @param {string} host @returns {boolean} whether only this machine can reach `host` */
export function isLoopback(host) {
  return LOOPBACK_HOSTS.has(host);
}

function problemsWithoutPassword(host, insecure) {
  if (insecure && isLoopback(host)) {
    return [];
  }
  const ask =
    'BULL_BOARD_PASSWORD is not set. The board can retry, pause and delete jobs, so it does not ' +
    'start without a password.';
  return insecure
    ? [`${ask} BULL_BOARD_INSECURE=1 lifts this on 127.0.0.1, ::1 and localhost only, not on ${host}.`]
    : [`${ask} Set one, or BULL_BOARD_INSECURE=1 to let every user of this machine in.`];
}

function readSwitch(env, name) {
  const word = (env[name] ?? '').trim().toLowerCase();
  if (TRUE_WORDS.has(word)) return true;
  if (FALSE_WORDS.has(word)) return false;
  throw new Error(`${name} is "${env[name]}": write 1 or 0.`);
}

function readPort(text) {
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (port >= 0 && port <= 65535) return port;
  throw new Error(`BULL_BOARD_PORT is "${text}": write a number from 0 (any free port) to 65535.`);
}

/**
 * @typedef {object} RedisTarget
 * @property {object} options what ioredis needs to connect
 * @property {string} label the address without its secrets, fit for logs
 * @property {string} setting the name of the setting it came from
 */

/**
 * Parses the URL here instead of leaving it to ioredis, because drivefeed's URLs are read by
 * redis-py too: `unix://` sockets, `?db=` and options such as `?socket_timeout=30`.
 * A sentence about a wrong URL never repeats the URL, which may hold a password.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {RedisTarget}
 */
export function readRedisTarget(env) {
  const setting = env.DRIVEFEED_REDIS_URL || !env.REDIS_URL ? 'DRIVEFEED_REDIS_URL' : 'REDIS_URL';
  let url;
  try {
    url = new URL(env[setting] || 'redis://127.0.0.1:6379/0');
  } catch {
    throw new Error(`${setting} is not a URL. Write it as redis://user:password@host:6379/0.`);
  }
  if (!['redis:', 'rediss:', 'unix:'].includes(url.protocol)) {
    throw new Error(`${setting} starts with "${url.protocol}": use redis://, rediss:// or unix://.`);
  }
  const isSocket = url.protocol === 'unix:';
  const dbText = url.searchParams.get('db') || (isSocket ? '' : url.pathname.slice(1)) || '0';
  if (!/^\d+$/.test(dbText)) {
    throw new Error(`${setting} names a database that is not a number. End it with /0, or ?db=0.`);
  }
  const options = { db: Number(dbText) };
  if (url.username) options.username = decodeURIComponent(url.username);
  if (url.password) options.password = decodeURIComponent(url.password);
  if (isSocket) {
    options.path = decodeURIComponent(url.pathname);
    return { options, label: `unix://${options.path}?db=${options.db}`, setting };
  }
  options.host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  options.port = Number(url.port || 6379);
  if (url.protocol === 'rediss:') {
    const authority = url.searchParams.get('ssl_ca_certs');
    options.tls = {
      servername: options.host,
      rejectUnauthorized: url.searchParams.get('ssl_cert_reqs') !== 'none',
      ...(authority ? { ca: readText(authority, `the certificate file named in ${setting}`) } : {}),
    };
  }
  const label = `${url.protocol}//${url.hostname || options.host}:${options.port}/${options.db}`;
  return { options, label, setting };
}

/**
 * @typedef {object} QueueRow one queue of drivefeed's table
 * @property {string} name
 * @property {string} purpose what the stage does, one sentence
 * @property {number} [concurrency] jobs at once in each worker
 * @property {number} [attempts]
 * @property {{first_s: number, max_s: number}} [backoff] seconds between attempts, with jitter
 * @property {{age_s?: number, count?: number}} [keep_completed]
 * @property {{age_s?: number, count?: number}} [keep_failed]
 */

/**
 * @param {string} path a file written by `drivefeed queues --json`
 * @returns {{prefix: string | undefined, queues: QueueRow[]}}
 */
export function readQueues(path) {
  const remedy = 'Write it anew with: drivefeed queues --json';
  let table;
  try {
    table = JSON.parse(readText(path, 'the table of queues'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Error(`${path} is not JSON. ${remedy}`);
  }
  if (table?.schema !== QUEUES_SCHEMA || !Array.isArray(table.queues) || table.queues.length === 0) {
    throw new Error(`${path} is not a table of queues with "schema": ${QUEUES_SCHEMA}. ${remedy}`);
  }
  const isGood = (row) =>
    typeof row?.name === 'string' &&
    /^[^:\s]+$/.test(row.name) &&
    typeof row.purpose === 'string' &&
    row.purpose !== '';
  const wrong = table.queues.findIndex((row) => !isGood(row));
  if (wrong >= 0) {
    throw new Error(
      `${path}: queue number ${wrong + 1} needs a name without spaces or colons, and a purpose. ${remedy}`,
    );
  }
  return { prefix: table.prefix, queues: table.queues };
}

function readText(path, what) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`Can't read ${what}, ${path} (${error.code}).`);
  }
}
