// The list of conversations: found, opened, renamed, deleted.

import { call } from './api.mjs';
import { fromTemplate } from './dom.mjs';
import { t } from './texts.mjs';

const PAUSE = 250; // ms between the last key and the search

export class Sidebar {
  #list = document.getElementById('conversations');
  #search = document.getElementById('search');
  #more = document.getElementById('more');
  #none = document.getElementById('none');
  #dialog = document.getElementById('sure');
  #on;
  #current = '';
  #cursor = null;
  #loads = 0;
  #later;

  /** `on`: `open(id)`, `changed(id)` after a rename, `deleted(id)`, `refused(message)`. */
  constructor(on) {
    this.#on = on;
    this.#search.addEventListener('input', () => {
      clearTimeout(this.#later);
      this.#later = setTimeout(() => this.load(), PAUSE);
    });
    this.#more.addEventListener('click', () => this.#loadMore());
    this.#list.addEventListener('click', (event) => this.#clicked(event));
  }

  /** Marks the conversation that is shown. */
  mark(id) {
    this.#current = id;
    for (const link of this.#list.querySelectorAll('a')) {
      if (link.dataset.id === id) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  /** Reads the list anew, from its top. */
  async load() {
    const current = this.#loads += 1;
    const found = await this.#page(null);
    if (!found || current !== this.#loads || this.#list.querySelector('form')) return;
    this.#show(found, []);
  }

  async #loadMore() {
    const found = await this.#page(this.#cursor);
    if (found) this.#show(found, [...this.#list.children]);
  }

  async #page(cursor) {
    const query = new URLSearchParams({ q: this.#search.value.trim() });
    if (cursor) query.set('cursor', cursor);
    return call('GET', `/api/conversations?${query}`).catch(({ status, message }) => {
      if (status === 401) this.#on.refused(message); // other trouble is the thread's to tell
      return null;
    });
  }

  #show({ conversations, next }, before) {
    this.#cursor = next;
    this.#more.hidden = next === null;
    const rows = conversations.map((one) => this.#row(one));
    const focused = this.#list.contains(document.activeElement) && document.activeElement;
    this.#list.replaceChildren(...before, ...rows);
    if (focused) this.#refocus(focused);
    this.#none.hidden = this.#list.childElementCount > 0;
    this.#none.textContent = t(this.#search.value.trim() ? 'nothing_found' : 'no_conversations');
    this.mark(this.#current);
  }

  // The list was drawn anew under somebody's hands.
  #refocus({ dataset }) {
    const same = [...this.#list.querySelectorAll('a, button')]
      .find((one) => one.dataset.id === dataset.id && one.dataset.act === dataset.act);
    (same ?? this.#search).focus();
  }

  #row({ id, title }) {
    const row = fromTemplate('conversation');
    const name = title || t('untitled');
    const link = row.querySelector('a');
    link.href = `/c/${id}`;
    link.textContent = link.title = name;
    for (const one of row.querySelectorAll('a, button')) one.dataset.id = id;
    row.querySelector('[data-act="rename"]').ariaLabel = t('rename_it', { title: name });
    row.querySelector('[data-act="delete"]').ariaLabel = t('delete_it', { title: name });
    return row;
  }

  #clicked(event) {
    const target = event.target.closest('a, button');
    if (!target) return;
    const { id, act } = target.dataset;
    if (act === 'rename') this.#rename(target.closest('li'), id);
    else if (act === 'delete') this.#delete(target.closest('li'), id);
    else if (target.matches('a') && !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      this.#on.open(id);
    }
  }

  #rename(row, id) {
    const form = fromTemplate('rename');
    const box = form.querySelector('input');
    const link = row.querySelector('a');
    let isOpen = true;
    const restore = () => {
      if (!isOpen) return;
      isOpen = false; // taking the box away takes its focus, which restores again
      form.replaceWith(link);
      link.focus();
    };
    box.value = link.textContent;
    link.replaceWith(form);
    box.select();
    box.addEventListener('keydown', ({ key }) => key === 'Escape' && restore());
    box.addEventListener('blur', restore);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const title = box.value.trim();
      restore();
      if (!title || title === link.textContent) return;
      link.textContent = title;
      await this.#do('PATCH', id, { title });
      this.#on.changed(id);
      this.load();
    });
  }

  #delete(row, id) {
    this.#dialog.querySelector('.what').textContent = row.querySelector('a').textContent;
    this.#dialog.returnValue = '';
    this.#dialog.showModal();
    this.#dialog.addEventListener('close', async () => {
      if (this.#dialog.returnValue !== 'delete') return;
      const next = (row.nextElementSibling ?? row.previousElementSibling)?.querySelector('a') ?? this.#search;
      if (!await this.#do('DELETE', id)) return;
      row.remove();
      next.focus();
      this.#on.deleted(id);
      this.load();
    }, { once: true });
  }

  async #do(method, id, body) {
    try {
      await call(method, `/api/conversations/${id}`, { body });
      return true;
    } catch (problem) {
      this.#on.refused(t('not_done', { why: problem.message }));
      return false;
    }
  }
}
