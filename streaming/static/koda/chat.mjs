// The plain page. A turn that is not over is drawn only from its stream, and what
// is drawn is only ever a reduced state. The conversation is read again whenever
// something may have changed elsewhere: reading it once too often is harmless.

import { initialAgentState, reduceAgentEvent } from './reducer.mjs';

const ENDED = { done: 'completed', failed: 'failed', cancelled: 'cancelled' };
const MAX_TRIES = 5; // per turn, without one new event
const MAX_STREAMS = 2; // a browser keeps six connections per host for all its tabs
const SILENCE = 30_000; // ms; scripts never see pings, so a dead stream looks like a quiet one
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
let lastHeard = 0;
let lastLoad = 0;
let nextLoad;
let pinned = true; // keep the end of the page in view
let unsent = {};

const isOpen = ({ state }) => state.status === 'idle' || state.status === 'running';
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

function statusLine({ status, text, tools, inputs, error, reason }) {
  if (status === 'completed') return text ? '' : 'The answer is empty.';
  if (status === 'failed') return `Failed: ${error?.message ?? 'no reason given'}`;
  if (status === 'cancelled') return reason === 'user' ? 'Stopped by the user.' : `Stopped: ${reason}`;
  if (status === 'idle') return 'Waiting…';
  if (Object.values(tools).some((tool) => tool.status === 'running')) return 'Looking something up…';
  if (text) return '';
  return inputs ? 'Starting over…' : 'Thinking…';
}

function element(tag, text, properties) {
  return Object.assign(document.createElement(tag), { textContent: text, ...properties });
}

function render(state) {
  const turn = turns.get(state.runId);
  const [inputs, tools, text, status] = turn.article.children;
  // Inputs only ever grow, so the longer list is the newer one.
  const shown = state.inputs?.length > turn.inputs.length ? state.inputs : turn.inputs;
  if (inputs.childElementCount !== shown.length) {
    inputs.replaceChildren(...shown.map((input) => element('p', input, { dir: 'auto' })));
  }
  // Tools only while the run is open, so that the page equals the one loaded later.
  tools.replaceChildren(...(isOpen(turn) ? Object.values(state.tools) : [])
    .map((tool) => element('li', tool.name, { className: tool.status })));
  // Appending, where it will do, leaves the reader's selection alone.
  const node = text.firstChild ?? text.appendChild(new Text());
  if (state.text.startsWith(node.data)) node.appendData(state.text.slice(node.length));
  else node.data = state.text;
  text.hidden = !state.text;
  status.textContent = turn.note ?? statusLine(state);
  turn.article.dataset.status = state.status;
  turn.article.ariaBusy = String(isOpen(turn) && !turn.note);
  if (pinned) window.scrollTo(0, document.documentElement.scrollHeight);
}

// Once for all that arrives together. A tab in the background gets no animation frames.
function draw(turn) {
  turn.drawing ??= setTimeout(() => {
    turn.drawing = undefined;
    if (turns.has(turn.id)) render(turn.state);
    drawControls();
  }, 16);
}

function drawControls() {
  const newest = [...turns.values()].at(-1);
  const joins = newest?.state.status === 'running' && Date.now() + serverAhead - newest.createdAt < mergeWindow;
  const isBusy = openTurns().length > 0;
  $('stop').hidden = !isBusy;
  $('hint').textContent = !isBusy ? 'Enter sends, Shift+Enter starts a new line.'
    : `A message now ${joins ? 'joins the running answer' : 'will be answered next'}.`;
}

// --- Following runs ---

function watch(turn) {
  const source = new EventSource(`/api/runs/${turn.id}/stream?protocol=agent`);
  let state = initialAgentState(turn.id);
  turn.source = source;
  lastHeard = Date.now();
  source.onmessage = ({ data }) => {
    lastHeard = Date.now();
    try {
      state = reduceAgentEvent(state, JSON.parse(data));
    } catch (problem) {
      console.warn(problem);
      return retry(turn);
    }
    // Read again from its start, it is shown once it has caught up with what is there.
    if (state.lastSequence < turn.state.lastSequence) return;
    if (state.lastSequence > turn.state.lastSequence) turn.tries = 0;
    turn.state = state;
    draw(turn);
    if (isOpen(turn)) return;
    close(turn); // or it would reconnect for ever
    $('announcement').textContent = statusLine(state) || 'The answer is complete.';
    follow();
  };
  // Of two kinds: the server's own `error` frame has data, trouble on the line has none.
  source.onerror = ({ data }) => {
    if (data && JSON.parse(data).code === 'gone') giveUp(turn, 'This answer was deleted.');
    else if (data || source.readyState === EventSource.CLOSED) retry(turn);
  };
}

function close(turn) {
  turn.source?.close();
  turn.source = undefined;
}

function retry(turn) {
  close(turn);
  turn.tries += 1;
  if (turn.tries > MAX_TRIES) giveUp(turn, LOST);
  else loadIn(250 * 2 ** turn.tries);
}

function giveUp(turn, note) {
  close(turn);
  turn.note = note;
  draw(turn);
}

function follow() {
  if (document.hidden) return;
  openTurns().slice(0, MAX_STREAMS).filter((turn) => !turn.source && !turn.note).forEach(watch);
}

// --- The conversation ---

function adopt(row) {
  const turn = turns.get(row.run_id) ?? addTurn(row.run_id);
  turn.inputs = row.inputs.map((input) => input.text);
  turn.createdAt = Date.parse(row.created_at ?? row.inputs[0]?.created_at);
  if (Object.hasOwn(ENDED, row.status)) {
    close(turn);
    const state = { status: ENDED[row.status], text: row.output, error: row.error, reason: row.finish_reason };
    const snapshot = { runId: turn.id, sequence: 1, type: 'snapshot', state };
    turn.state = reduceAgentEvent(initialAgentState(turn.id), snapshot);
  }
  draw(turn);
}

function addTurn(id) {
  const article = $('turn').content.cloneNode(true).firstElementChild;
  const turn = { id, article, inputs: [], state: initialAgentState(id), tries: 0 };
  article.dataset.runId = id;
  $('turns').append(article);
  turns.set(id, turn);
  return turn;
}

function drop(turn) {
  close(turn);
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
    turns.forEach(close);
    return say(problem.message);
  }
  if (problem) {
    loadIn(3000);
    return say(`${problem.message} Trying again…`);
  }
  say('');
  mergeWindow = merge_window_ms;
  turns.forEach((turn) => rows.some((row) => row.run_id === turn.id) || drop(turn));
  rows.forEach(adopt);
  follow();
}

function loadIn(delay) {
  clearTimeout(nextLoad);
  nextLoad = setTimeout(load, delay);
}

function reopen() {
  turns.forEach(close);
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
setInterval(() => {
  drawControls();
  if (openTurns().some((turn) => turn.source) && Date.now() - lastHeard > SILENCE) reopen();
}, 1000);

box.value = sessionStorage.getItem(draftName()) ?? '';
drawControls();
load();
