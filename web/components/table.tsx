import type { ComponentChildren } from 'preact';

/** A title alone, or with how its column looks: numbers stand at the right, and some columns only on wide screens. */
type Column = string | { title: ComponentChildren; number?: boolean; wide?: boolean; isHidden?: boolean };

/** Buttons of a row; only screen readers need its title. */
export const ACTION: Column = { title: 'Action', number: true, isHidden: true };

/**
 * Rows under their titles; a column that is false or null is left out. `stack`: on narrow screens each row is a card, whose
 * cells have their titles in `data-label`.
 */
export function Table(props: {
  kind: 'stack' | 'records stack' | 'compact' | 'compact inset';
  /** Absent where the rows speak for themselves. */
  columns?: readonly (Column | false | null)[];
  after?: boolean;
  children: ComponentChildren;
}) {
  return (
    <div class={`table-box${props.after ? ' after' : ''}`}>
      <table class={`table ${props.kind}`}>
        {props.columns ? (
          <thead>
            <tr>
              {props.columns.map((column) =>
                column === false || column === null ? null : <Heading column={column} />,
              )}
            </tr>
          </thead>
        ) : null}
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

function Heading({ column }: { column: Column }) {
  if (typeof column === 'string') return <th>{column}</th>;
  const names = [column.number ? 'number' : '', column.wide ? 'wide-only' : ''].filter(Boolean).join(' ');
  return (
    <th class={names || undefined}>
      {column.isHidden ? <span class="sr">{column.title}</span> : column.title}
    </th>
  );
}
