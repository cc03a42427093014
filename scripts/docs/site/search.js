// Plain script, so that it also runs from file://. The index is in search-index.js.
(() => {
  const input = document.querySelector('.search input');
  const list = document.querySelector('.search ol');
  const root = document.documentElement.dataset.root;
  let index = null;

  const find = (words) => {
    index ??= MiniSearch.loadJSON(window.SEARCH_INDEX, window.SEARCH_OPTIONS);
    return index.search(words, {
      prefix: true,
      fuzzy: 0.15,
      combineWith: 'AND',
      boost: { title: 3, page: 2 },
    });
  };

  const show = () => {
    list.replaceChildren();
    const words = input.value.trim();
    if (words === '') return;
    const found = find(words).slice(0, 12);
    for (const { title, page, url } of found) {
      const link = document.createElement('a');
      link.href = root + url;
      link.textContent = title;
      const small = document.createElement('small');
      small.textContent = page;
      link.append(small);
      const item = document.createElement('li');
      item.append(link);
      list.append(item);
    }
    if (found.length > 0) return;
    const none = document.createElement('li');
    none.textContent = 'nothing found';
    list.append(none);
  };

  input.addEventListener('input', show);
  document.addEventListener('keydown', (event) => {
    const links = [...list.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    if (event.key === '/' && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    } else if (event.key === 'Escape') {
      input.value = '';
      show();
    } else if (event.key === 'Enter' && document.activeElement === input) links[0]?.click();
    else if (event.key === 'ArrowDown' && (at >= 0 || document.activeElement === input)) {
      event.preventDefault();
      links[at + 1]?.focus();
    } else if (event.key === 'ArrowUp' && at >= 0) {
      event.preventDefault();
      (links[at - 1] ?? input).focus();
    }
  });
  list.addEventListener('click', () => list.replaceChildren());
  const menu = document.querySelector('nav details');
  if (menu && matchMedia('(min-width: 50.01rem)').matches) menu.open = true;
})();
