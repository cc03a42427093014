import { escapeHtml } from '../../core/text/escape-html.ts';
import { HTML, reply } from './answers.ts';
import { CASES, pathsOf } from './behaviours.ts';

/** The page that lists everything, with links. */
export function indexPage(): Buffer {
  const rows = CASES.map((each) => {
    const links = pathsOf(each).map(
      (path, index) => `<a href="${path}">${index === 0 ? escapeHtml(each.base) : index + 1}</a>`,
    );
    const ending = [each.ending, ...(each.or ?? [])].join(' or ');
    const cells = [links.join(' '), escapeHtml(each.what), ending, escapeHtml(each.why ?? '')];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  const head = '<tr><th>path</th><th>what it does</th><th>how it should end</th><th>why</th></tr>';
  return reply(
    '200 OK',
    [HTML],
    `<!doctype html>\n<html lang="en"><head><title>The hostile web</title></head><body>
<h1>The hostile web</h1>
<table>${head}\n${rows.join('\n')}\n</table>
<p id="end">the end</p></body></html>\n`,
  );
}
