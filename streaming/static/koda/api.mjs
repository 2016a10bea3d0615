// The API. A refusal is an Error with a text for people and the `status`; 0 = nobody answered.

import { t } from './texts.mjs';

const PATIENCE = 10_000; // ms

let ahead = 0;

/** The server's clock, in ms. */
export const serverNow = () => Date.now() + ahead;

/** The answer's JSON. `patience` in ms. */
export async function call(method, path, { body, headers, patience = PATIENCE } = {}) {
  const csrfToken = document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? '';
  const response = await fetch(path, {
    method,
    headers: { 'Content-Type': 'application/json', 'X-CSRFToken': csrfToken, ...headers },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(patience),
  }).catch(() => { throw refusal(0, t('no_connection')); });
  ahead = Date.parse(response.headers.get('Date')) - Date.now() || 0;
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw refusal(response.status, REASONS[response.status]?.() ?? answer.detail ?? t('server_answered', response));
}

const REASONS = { 401: () => t('signed_out'), 404: () => t('not_found') };

function refusal(status, message) {
  return Object.assign(new Error(message), { status });
}

/** Whether trying again may help. */
export const isPassing = ({ status }) => status === 0 || status === 429 || status >= 500;

/** A key under which the server takes a message once only. */
export const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join('-');
