import { createHash, timingSafeEqual } from 'node:crypto';
import { isLoopback } from './settings.mjs';

const REALM = 'drivefeed Bull Board';

// The page loads nothing from elsewhere: its stylesheet would fetch fonts from a third party,
// which would then learn who looks at the queues, and when. Inline styles are the UI library's.
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "worker-src 'self' blob:",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** Express middleware: headers that keep the page to itself. */
export function guardHeaders(request, response, next) {
  response.set({
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
  });
  if (!request.path.startsWith('/static/')) response.set('Cache-Control', 'no-store');
  next();
}

/**
 * Express middleware: basic auth, or, without a password, a check that the browser really meant
 * this machine (a page elsewhere whose name resolves to 127.0.0.1 could otherwise use the board).
 *
 * @param {{user: string, password: string}} settings
 */
export function requireSignIn({ user, password }) {
  if (!password) return requireLoopbackName;
  const expected = digest(`${user}:${password}`);
  return (request, response, next) => {
    if (timingSafeEqual(digest(readCredentials(request.get('authorization'))), expected)) {
      next();
      return;
    }
    response
      .status(401)
      .set('WWW-Authenticate', `Basic realm="${REALM}", charset="UTF-8"`)
      .format({
        html: () => response.send(REFUSAL_PAGE),
        json: () => response.json({ error: 'Sign in with the user and password of the board.' }),
        default: () => response.type('text').send('Sign in with the user and password of the board.\n'),
      });
  };
}

/** Express middleware for a read-only board: nothing that could change a queue gets through. */
export function refuseChanges(request, response, next) {
  if (request.method === 'GET' || request.method === 'HEAD') {
    next();
    return;
  }
  response
    .status(405)
    .set('Allow', 'GET, HEAD')
    .json({ error: 'This board is read-only (BULL_BOARD_READ_ONLY=1).' });
}

function requireLoopbackName(request, response, next) {
  if (isLoopback(request.hostname.replace(/^\[|\]$/g, ''))) {
    next();
    return;
  }
  response
    .status(403)
    .json({ error: 'Without a password the board answers to 127.0.0.1, ::1 and localhost only.' });
}

// Digests have one length, so the comparison takes the same time whatever was sent.
function digest(text) {
  return createHash('sha256').update(text, 'utf8').digest();
}

function readCredentials(header) {
  const match = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(header ?? '');
  return match ? Buffer.from(match[1], 'base64').toString('utf8') : '';
}

const REFUSAL_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in · drivefeed queues</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1rem; }
@media (prefers-color-scheme: dark) { body { background: #151a21; color: #dfe5ec; } }
</style>
</head>
<body>
<h1>Sign in to see the queues</h1>
<p>This board can retry, pause and delete jobs, so it asks for a user and a password.
They are <code>BULL_BOARD_USER</code> and <code>BULL_BOARD_PASSWORD</code> in the environment the
board was started with. Reload this page to try again.</p>
</body>
</html>
`;
