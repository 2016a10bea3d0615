// The plain page. A turn that is not over is drawn only from its stream, and what
// is drawn is only ever a reduced state. The conversation is read again whenever
// something may have changed elsewhere: reading it once too often is harmless.

import { watch } from './follow.mjs';
import { initialAgentState, reduceAgentEvent } from './reducer.mjs';
import { isOpen, newTurn, render, statusLine } from './turn.mjs';

const ENDED = { done: 'completed', failed: 'failed', cancelled: 'cancelled' };
const MAX_TRIES = 5; // per turn, without one new event
const LOST = 'The connection to this answer is lost. Reload the page to go on.';
const REFUSALS = {
  401: 'You are signed out. Sign in and reload the page.',
  404: 'This conversation does not exist, or it is not yours.',
};

const $ = (id) => document.getElementById(id);
const box = $('message');
const tabs = new BroadcastChannel('koda');
const turns = new Map(); // run id → turn, oldest first
let conversation = document.body.dataset.conversationId;
let mergeWindow = Number(document.body.dataset.mergeWindowMs);
let serverAhead = 0; // ms between the server's clock and ours
let lastLoad = 0;
let nextLoad;
let pinned = true; // keep the end of the page in view
let unsent = {};

const openTurns = () => [...turns.values()].filter(isOpen);
const draftName = () => `koda.draft:${location.pathname}`;
const say = (text) => { $('notice').textContent = text; };

async function api(method, path, body, headers) {
  const csrfToken = document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? '';
  const response = await fetch(path, {
    method,
    headers: { 'Content-Type': 'application/json', 'X-CSRFToken': csrfToken, ...headers },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(15_000),
  }).catch(() => { throw new Error('No connection to the server.'); });
  serverAhead = Date.parse(response.headers.get('Date')) - Date.now() || 0;
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const { status } = response;
  const message = REFUSALS[status] ?? answer.detail ?? `The server answered ${status}.`;
  throw Object.assign(new Error(message), { status });
}

// --- Drawing ---

// Once for all that arrives together. A tab in the background gets no animation frames.
function draw(turn) {
  turn.drawing ??= setTimeout(() => {
    turn.drawing = undefined;
    render(turn);
    if (pinned) window.scrollTo(0, document.documentElement.scrollHeight);
    drawControls();
  }, 16);
}

function drawControls() {
  const isBusy = openTurns().length > 0;
  $('stop').hidden = !isBusy;
  $('hint').textContent = isBusy ? busyHint() : 'Enter sends, Shift+Enter starts a new line.';
}

function busyHint() {
  const newest = [...turns.values()].at(-1);
  const seconds = Math.floor((newest.createdAt + mergeWindow - Date.now() - serverAhead) / 1000);
  const joins = newest.state.status === 'running' && seconds > 0;
  return joins ? `A message within ${seconds} s joins the running answer.` : 'A message now will be answered next.';
}

// --- Following runs ---

// The oldest open run only: no other of its conversation can be at work.
function follow() {
  const turn = openTurns().find(({ note }) => !note);
  if (document.hidden || !turn || turn.leave) return;
  turn.leave = watch(turn.id, {
    changed: (state) => advance(turn, state),
    broken: (code) => mend(turn, code),
  });
}

function advance(turn, state) {
  // Read again from its start, it is shown once it has caught up with what is there.
  if (state.lastSequence < turn.state.lastSequence) return;
  if (state.lastSequence > turn.state.lastSequence) turn.tries = 0;
  turn.state = state;
  draw(turn);
  if (isOpen(turn)) return;
  leave(turn); // or it would reconnect for ever
  $('announcement').textContent = statusLine(state) || 'The answer is complete.';
  load(); // the next question may have been asked elsewhere
}

function mend(turn, code) {
  leave(turn);
  if (code === 'silence') return load();
  turn.tries += 1;
  if (turn.tries > MAX_TRIES) return giveUp(turn, LOST);
  loadIn(250 * 2 ** turn.tries);
}

function leave(turn) {
  turn.leave?.();
  turn.leave = undefined;
}

function giveUp(turn, note) {
  leave(turn);
  turn.note = note;
  draw(turn);
}

// --- The conversation ---

function adopt(row) {
  const turn = turns.get(row.run_id) ?? addTurn(row.run_id);
  turn.inputs = row.inputs.map((input) => input.text);
  turn.createdAt = Date.parse(row.created_at ?? row.inputs[0]?.created_at);
  if (Object.hasOwn(ENDED, row.status)) {
    leave(turn);
    turn.note = undefined;
    const state = { status: ENDED[row.status], text: row.output, error: row.error, reason: row.finish_reason };
    const snapshot = { runId: turn.id, sequence: 1, type: 'snapshot', state };
    turn.state = reduceAgentEvent(initialAgentState(turn.id), snapshot);
  }
  draw(turn);
}

function addTurn(id) {
  const turn = newTurn(id);
  turns.set(id, turn);
  $('turns').append(turn.article);
  return turn;
}

function drop(turn) {
  leave(turn);
  turn.article.remove();
  turns.delete(turn.id);
}

async function load() {
  if (!conversation) return;
  lastLoad += 1;
  const current = lastLoad;
  const { turns: rows, merge_window_ms, problem } = await api('GET', `/api/conversations/${conversation}`)
    .catch((caught) => ({ problem: caught }));
  if (current !== lastLoad) return;
  if (problem?.status < 500) {
    openTurns().forEach((turn) => giveUp(turn, problem.message));
    return say(problem.message);
  }
  if (problem) {
    loadIn(3000);
    return say(`${problem.message} Trying again…`);
  }
  say('');
  mergeWindow = merge_window_ms;
  $('welcome').hidden = rows.length > 0;
  turns.forEach((turn) => rows.some((row) => row.run_id === turn.id) || drop(turn));
  rows.forEach(adopt);
  follow();
}

function loadIn(delay) {
  clearTimeout(nextLoad);
  nextLoad = setTimeout(load, delay);
}

function reopen() {
  turns.forEach((turn) => {
    leave(turn);
    Object.assign(turn, { tries: 0, note: undefined });
  });
  if (!document.hidden) load();
}

async function change(path, body, headers) {
  await api('POST', path, body, headers);
  tabs.postMessage(conversation);
  load();
}

async function send() {
  const text = box.value;
  if (!text.trim() || box.readOnly) return;
  box.readOnly = true;
  // Sent again after a failure, the same text is the same message.
  if (unsent.text !== text) unsent = { text, key: crypto.getRandomValues(new Uint32Array(4)).join('-') };
  try {
    conversation ||= (await api('POST', '/api/conversations', {})).id;
    await change(`/api/conversations/${conversation}/messages`, { text }, { 'Idempotency-Key': unsent.key });
    unsent = {};
    box.value = '';
    sessionStorage.removeItem(draftName());
    history.replaceState(null, '', `/c/${conversation}`);
    pinned = true;
  } catch (problem) {
    say(`Not sent. ${problem.message}`);
  }
  box.readOnly = false;
  box.focus();
}

$('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  send();
});
box.addEventListener('keydown', (event) => {
  // 229: for Safari the Enter that ends a composition is no longer composing.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  send();
});
box.addEventListener('input', () => sessionStorage.setItem(draftName(), box.value));
$('stop').addEventListener('click', () => {
  change(`/api/runs/${openTurns()[0].id}/cancel`).catch((problem) => say(`Not stopped. ${problem.message}`));
});
tabs.addEventListener('message', ({ data }) => data === conversation && load());
document.addEventListener('visibilitychange', reopen); // a hidden tab holds no connection
window.addEventListener('online', reopen);
document.addEventListener('scroll', () => {
  pinned = window.innerHeight + window.scrollY > document.documentElement.scrollHeight - 80;
});
setInterval(drawControls, 1000);

box.value = sessionStorage.getItem(draftName()) ?? '';
drawControls();
load();
