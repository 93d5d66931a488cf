import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { Queue } from 'bullmq';
import express from 'express';
import { guardHeaders, refuseChanges, requireSignIn } from './access.mjs';

/**
 * The board as an Express application, over one connection to Redis.
 *
 * @param {ReturnType<import('./settings.mjs').readSettings>} settings
 * @param {import('./redis-link.mjs').RedisLink} link
 * @returns {{app: import('express').Express, close: () => Promise<void>}}
 */
export function createBoard(settings, link) {
  let queues = openQueues(settings, link);
  const serverAdapter = new ExpressAdapter();
  const board = createBullBoard({
    queues: queues.map((queue, index) => adapt(queue, settings.queues[index], settings)),
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'drivefeed queues',
        hideDocsLink: true,
        showMetrics: true,
        ...(settings.readOnly ? { environment: { label: 'read-only', color: '#8a6d1f' } } : {}),
      },
    },
  });

  // A queue whose first commands fell into an outage stays broken for good, so it is opened anew.
  link.client.on('ready', async () => {
    const readiness = await Promise.allSettled(queues.map((queue) => queue.waitUntilReady()));
    if (readiness.every(({ status }) => status === 'fulfilled')) return;
    const broken = queues;
    queues = openQueues(settings, link);
    board.replaceQueues(
      queues.map((queue, index) => adapt(queue, settings.queues[index], settings)),
    );
    await Promise.allSettled(broken.map((queue) => queue.close()));
  });

  const app = express();
  app.disable('x-powered-by');
  serverAdapter.getRouter().disable('x-powered-by');
  app.use(guardHeaders);
  app.get('/healthz', async (_request, response) => {
    const answers = await link.answers();
    response
      .status(answers ? 200 : 503)
      .json(answers ? { status: 'ok', redis: 'answers' } : { status: 'degraded', redis: 'down' });
  });
  app.use(requireSignIn(settings));
  if (settings.readOnly) app.use(refuseChanges);
  app.use('/api', (_request, response, next) => {
    if (link.client.status === 'ready') next();
    else response.status(503).set('Retry-After', '2').json({ error: link.outage, message: link.outage });
  });
  app.use(serverAdapter.getRouter());
  return {
    app,
    close: async () => {
      await Promise.allSettled(queues.map((queue) => queue.close()));
    },
  };
}

/**
 * What the board shows under a queue's name: what the stage does, and how it is run.
 *
 * @param {import('./settings.mjs').QueueRow} row
 * @returns {string}
 */
export function describe(row) {
  const facts = [];
  if (row.concurrency) facts.push(`${row.concurrency} at once in each worker`);
  if (row.attempts) facts.push(`${row.attempts} attempts`);
  if (row.backoff) {
    const { first_s: first, max_s: longest } = row.backoff;
    facts.push(`waits ${first} s after the first, doubling up to ${longest} s`);
  }
  return facts.length > 0 ? `${row.purpose} (${facts.join('; ')})` : row.purpose;
}

function openQueues(settings, link) {
  return settings.queues.map((row) => {
    const queue = new Queue(row.name, {
      connection: link.client,
      prefix: settings.prefix,
      // Looking at a queue must not write to it.
      skipMetasUpdate: true,
      defaultJobOptions: defaultJobOptions(row),
    });
    // The link reports outages, once; a queue without a listener would end the process instead.
    queue.on('error', () => {});
    return queue;
  });
}

function defaultJobOptions(row) {
  const keep = (limit) => ({
    ...(limit.age_s ? { age: limit.age_s } : {}),
    ...(limit.count ? { count: limit.count } : {}),
  });
  return {
    ...(row.attempts ? { attempts: row.attempts } : {}),
    ...(row.keep_completed ? { removeOnComplete: keep(row.keep_completed) } : {}),
    ...(row.keep_failed ? { removeOnFail: keep(row.keep_failed) } : {}),
  };
}

function adapt(queue, row, settings) {
  return new BullMQAdapter(queue, {
    description: describe(row),
    readOnlyMode: settings.readOnly,
    allowRetries: !settings.readOnly,
  });
}
