import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Button } from './basics.tsx';

/** A question before something that cannot be undone, or a small form. The browser keeps the focus inside. */
export function Dialog(props: {
  title: string;
  children: ComponentChildren;
  action: string;
  isDanger?: boolean;
  onClose: () => void;
  onAccept: () => void;
}) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => place.current?.showModal(), []);
  return (
    <dialog class="dialog" ref={place} onClose={props.onClose} aria-label={props.title}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          props.onAccept();
          place.current?.close();
        }}
      >
        <h2>{props.title}</h2>
        <div class="dialog-body">{props.children}</div>
        <div class="actions">
          <Button onClick={() => place.current?.close()}>Cancel</Button>
          <Button type="submit" kind={props.isDanger ? 'danger' : 'primary'}>
            {props.action}
          </Button>
        </div>
      </form>
    </dialog>
  );
}
