// Elements. The only way by which text of others gets into the page is as a text node: nothing here
// or elsewhere reads HTML.

/** An element with properties (`dataset` too) and children; null children are left out. */
export function element(tag, properties = {}, ...children) {
  const { dataset, ...rest } = properties;
  const made = Object.assign(document.createElement(tag), rest);
  Object.assign(made.dataset, dataset);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Nodes for a tree of `parseInline`. */
export function build(tree) {
  return tree.map((node) => {
    if (typeof node === 'string') return new Text(node);
    const made = element(node.tag, {}, ...build(node.children));
    if (node.href) Object.assign(made, { href: node.href, target: '_blank', rel: 'noopener noreferrer nofollow' });
    return made;
  });
}

/**
 * Makes `old` like `fresh`, which is used up, and returns what is in the page now. What is equal
 * stays the very same node, so that a reader's selection and the layout around it survive.
 */
export function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return fresh;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (fresh.data.startsWith(old.data)) old.appendData(fresh.data.slice(old.length));
    else old.data = fresh.data;
    return old;
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const now = [...old.childNodes];
  const then = [...fresh.childNodes];
  now.slice(then.length).forEach((node) => node.remove());
  then.forEach((node, index) => (now[index] ? morph(now[index], node) : old.append(node)));
  return old;
}

/** A copy of a template's first element. */
export function fromTemplate(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}
