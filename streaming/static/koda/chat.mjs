// The page: its parts, and who tells whom.

import { Composer } from './composer.mjs';
import { element } from './dom.mjs';
import { Drawer } from './drawer.mjs';
import { Editor } from './editor.mjs';
import { textOf } from './parts.mjs';
import { Scroll } from './scroll.mjs';
import { Sidebar } from './sidebar.mjs';
import { t } from './texts.mjs';
import { Thread } from './thread.mjs';
import { statusLine } from './turn.mjs';
import { Wakefulness } from './wakefulness.mjs';

const QUIET = 1000; // ms; trouble that is shorter is not told
const $ = (id) => document.getElementById(id);

const scroll = new Scroll($('jump'));
const drawer = new Drawer();
const thread = new Thread($('turns'), { drawn, ended, trouble, refused, loaded, elsewhere: () => sidebar.load() });
const composer = new Composer(thread, { sent, refused });
const editor = new Editor({ save: (turn, inputs) => doing(() => thread.regenerate(turn, inputs)) });
const sidebar = new Sidebar({ open, changed, deleted, refused });

let later;
let title = ''; // as it stands in the list

// --- What the parts tell ---

function drawn() {
  const isEmpty = !thread.id && thread.turns.size === 0;
  $('welcome').hidden = !isEmpty;
  $('earlier-turns').hidden = !thread.hasEarlier;
  composer.draw();
  scroll.keep();
}

function loaded(thread) {
  document.title = thread.title ? `${thread.title} – Koda` : 'Koda';
  if (thread.title !== title) sidebar.load();
  title = thread.title;
  wakefulness.fresh();
  refused('');
}

function ended(turn) {
  announce(statusLine(turn.story.state) || t('complete'));
}

function sent({ merged }) {
  if (merged) announce(t('joined'));
  if (location.pathname !== `/c/${thread.id}`) history.replaceState(null, '', `/c/${thread.id}`);
  sidebar.mark(thread.id);
  scroll.toEnd();
}

function refused(message) {
  $('notice').textContent = message;
  $('sign-in').hidden = !message.includes(t('signed_out'));
}

// One quiet line, and only for trouble that lasts.
function trouble(is) {
  if (is && !later) later = setTimeout(() => { $('connection').textContent = t('reconnecting'); }, QUIET);
  if (is) return;
  clearTimeout(later);
  later = undefined;
  $('connection').textContent = '';
}

function announce(text) {
  $('announcement').textContent = '';
  $('announcement').textContent = text;
}

function changed(id) {
  if (id === thread.id) thread.load();
  thread.announce(id);
}

function deleted(id) {
  thread.announce(id);
  if (id === thread.id) go('', { replace: true });
}

// --- From one conversation to another ---

function open(id) {
  go(id);
  drawer.close();
}

function go(id, { replace = false } = {}) {
  const path = id ? `/c/${id}` : '/';
  if (replace) history.replaceState(null, '', path);
  else if (path !== location.pathname) history.pushState(null, '', path);
  return show(id);
}

function show(id) {
  editor.close();
  refused('');
  trouble(false);
  document.title = 'Koda';
  thread.show(id);
  composer.restore();
  sidebar.mark(id);
  scroll.toEnd();
  if (!drawer.isNarrow) composer.focus();
}

const idInPath = () => /^\/c\/([^/]+)/.exec(location.pathname)?.[1] ?? '';

// --- What people do ---

async function doing(work) {
  refused('');
  try {
    await work();
    scroll.toEnd();
    composer.focus();
    return true;
  } catch (problem) {
    refused(t('not_done', { why: problem.message }));
    return false;
  }
}

async function copy(button, text) {
  await clip(text);
  button.textContent = t('copied');
  announce(t('copied'));
  setTimeout(() => { button.textContent = t('copy'); }, 1500);
}

// The clipboard's own interface exists on https and on localhost only.
async function clip(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = element('textarea', { value: text, className: 'visually-hidden' });
  document.body.append(box);
  box.select();
  document.execCommand('copy');
  return box.remove();
}

const ACTS = {
  copy: (turn, button) => copy(button, textOf(turn.story.parts)),
  'copy-code': (_turn, button) => copy(button, button.closest('.code').querySelector('code').textContent),
  edit: (turn) => editor.open(turn),
  regenerate: (turn) => doing(() => thread.regenerate(turn)),
  retry: (turn) => doing(() => thread.regenerate(turn)),
};

$('turns').addEventListener('click', (event) => {
  const button = event.target.closest('[data-act]');
  const act = ACTS[button?.dataset.act];
  if (act) act(thread.turns.get(button.closest('article').dataset.runId), button);
});
$('earlier-turns').addEventListener('click', () => doing(() => thread.loadEarlier()));
$('examples')?.addEventListener('click', ({ target }) => target.matches('button') && composer.send(target.textContent));
document.querySelectorAll('a[href="/"]').forEach((link) => link.addEventListener('click', (event) => {
  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  open('');
}));
window.addEventListener('popstate', () => show(idInPath()));

const wakefulness = new Wakefulness({
  asleep: () => thread.stop(),
  awake: () => {
    thread.load();
    sidebar.load();
  },
  stale: () => thread.load(),
  offline: () => trouble(true),
});

sidebar.load();
show(idInPath());
