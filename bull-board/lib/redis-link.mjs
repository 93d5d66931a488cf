import { Redis } from 'ioredis';

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 5_000;
const LONGEST_RETRY_MS = 2_000;
const REFUSALS = /WRONGPASS|NOAUTH|NOPERM|invalid password/i;

/**
 * The board's one connection to Redis. It outlives any outage: it reconnects for ever, commands
 * fail at once while it is down, and the log gets one line when it goes and one when it is back.
 */
export class RedisLink {
  #told = '';
  #wasReady = false;

  /**
   * @param {import('./settings.mjs').RedisTarget} target
   * @param {(line: string) => void} say
   */
  constructor(target, say) {
    this.target = target;
    this.say = say;
    this.client = new Redis({
      ...target.options,
      connectionName: 'drivefeed-bull-board',
      connectTimeout: CONNECT_TIMEOUT_MS,
      commandTimeout: COMMAND_TIMEOUT_MS,
      // Commands that wait for a Redis that is down would pile up behind a polling page.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
      lazyConnect: true,
      retryStrategy: (times) => Math.min(times * 100, LONGEST_RETRY_MS),
    });
    this.client.on('error', (error) => this.#tellDown(error));
    this.client.on('ready', () => this.#tellUp());
    this.client.on('close', () => this.#tellLost());
  }

  /** Starts connecting. Never rejects: a Redis that is down is an outage like any other. */
  connect() {
    this.client.connect().catch(() => {});
  }

  /** @returns {Promise<boolean>} whether Redis answered a PING just now */
  async answers() {
    if (this.client.status !== 'ready') return false;
    try {
      return (await this.client.ping()) === 'PONG';
    } catch {
      return false;
    }
  }

  /** @returns {string} what the person in front of the board should know while Redis is down */
  get outage() {
    return (
      this.#told ||
      `Redis at ${this.target.label} does not answer. The board keeps running and tries again.`
    );
  }

  close() {
    this.client.removeAllListeners('close');
    this.client.disconnect();
  }

  #tellUp() {
    this.say(
      this.#told
        ? `Redis at ${this.target.label} answers again.`
        : `Connected to Redis at ${this.target.label}.`,
    );
    this.#told = '';
    this.#wasReady = true;
  }

  #tellLost() {
    if (this.#wasReady && !this.#told) {
      this.#wasReady = false;
      this.#tell(`The connection to Redis at ${this.target.label} was lost.`);
    }
  }

  #tellDown(error) {
    // The error object of a refused AUTH holds the password among its arguments: its code and
    // its kind are used, the object never.
    if (REFUSALS.test(error.message)) {
      this.#tell(
        `Redis at ${this.target.label} refused the credentials. Check the user and password in ` +
          `${this.target.setting}.`,
      );
    } else if (!this.#told) {
      this.#tell(`Redis at ${this.target.label} does not answer (${error.code ?? error.name}).`);
    }
  }

  #tell(sentence) {
    const text = `${sentence} The board keeps running and tries again.`;
    if (text !== this.#told) this.say(text);
    this.#told = text;
  }
}
