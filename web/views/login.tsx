import { useState } from 'preact/hooks';
import { logIn } from '../about.ts';
import { Button, Failure } from '../components/basics.tsx';

export function LoginView() {
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    setBusy(true);
    try {
      await logIn(String(new FormData(form).get('key') ?? '').trim());
    } catch (problem) {
      setError(problem as Error);
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <img src="/assets/icon.svg" alt="" width="44" height="44" />
        <h1>Seine</h1>
        <label>
          API key
          <input name="key" type="password" autocomplete="current-password" required spellcheck={false} />
        </label>
        <Failure error={error} />
        <Button type="submit" kind="primary" disabled={isBusy}>
          Log in
        </Button>
        <p class="dim">
          <code>seine keys create</code> on the server makes a key. It is kept in a cookie that no script can
          read.
        </p>
      </form>
    </main>
  );
}
