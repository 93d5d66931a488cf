import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createBoard } from './lib/board.mjs';
import { RedisLink } from './lib/redis-link.mjs';
import { SettingsError, isLoopback, readSettings } from './lib/settings.mjs';

const EXIT_SETTINGS = 2;
const EXIT_CANNOT_LISTEN = 3;
const CLOSE_DEADLINE_MS = 5_000;

const say = (line) => console.log(line);

function start(settings) {
  const link = new RedisLink(settings.redis, say);
  const board = createBoard(settings, link);
  const server = createServer(board.app);
  link.connect();

  server.once('error', (error) => {
    console.error(whyNotListening(error, settings));
    process.exit(EXIT_CANNOT_LISTEN);
  });
  server.listen(settings.port, settings.host, () => {
    const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host;
    const url = `http://${host}:${server.address().port}`;
    say(`Bull Board over ${settings.queues.length} queues with prefix "${settings.prefix}": ${url}`);
    say(whoMayEnter(settings));
    if (settings.readyFile) writeReadyFile(settings.readyFile, url);
  });

  const stop = async (signal) => {
    // A second signal means now.
    process.once(signal, () => process.exit(1));
    say('Closing the board.');
    if (settings.readyFile) rmSync(settings.readyFile, { force: true });
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), CLOSE_DEADLINE_MS).unref();
    await closed;
    await board.close();
    link.close();
    process.exit(0);
  };
  process.once('SIGTERM', () => stop('SIGTERM'));
  process.once('SIGINT', () => stop('SIGINT'));
}

function whoMayEnter({ host, insecure, password, readOnly, user }) {
  const limit = readOnly ? ' It is read-only.' : '';
  if (!password && insecure) {
    return `Anyone on this machine may use it, because BULL_BOARD_INSECURE=1.${limit}`;
  }
  const wire = isLoopback(host)
    ? ''
    : ' It speaks plain HTTP: put a TLS proxy in front of it, or the password travels readable.';
  return `Sign in as "${user}" with the password in BULL_BOARD_PASSWORD.${limit}${wire}`;
}

function whyNotListening(error, { host, port }) {
  switch (error.code) {
    case 'EADDRINUSE':
      return (
        `Port ${port} on ${host} is in use. Stop what uses it, or choose another with ` +
        'BULL_BOARD_PORT (0 takes any free one).'
      );
    case 'EACCES':
      return `Port ${port} on ${host} is not allowed for this user. Choose one above 1023.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `BULL_BOARD_HOST is ${host}, which is no address of this machine.`;
    default:
      return `The board can't listen on ${host}, port ${port} (${error.code ?? error.message}).`;
  }
}

/** Whoever waits for the file finds it complete: it appears under its name by a rename. */
function writeReadyFile(path, url) {
  const partial = `${path}.${process.pid}.tmp`;
  writeFileSync(partial, `${JSON.stringify({ url, pid: process.pid })}\n`);
  renameSync(partial, path);
}

try {
  start(readSettings(process.env));
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  for (const problem of error.problems) console.error(problem);
  process.exit(EXIT_SETTINGS);
}
