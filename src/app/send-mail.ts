import type { MailTarget } from '../core/alerts/mail-target.ts';

/** A server that does not answer in this time is given up, and asked once more. */
const ANSWER_MS = 15_000;
const TRIES = 3;

interface Mail {
  subject: string;
  text: string;
}

/** By SMTP. What the server refuses is not sent again; what did not reach it is. */
export async function sendMail(target: MailTarget, { subject, text }: Mail): Promise<void> {
  const { createTransport } = await import('nodemailer');
  const { host, port, encryption, login, from, to } = target;
  const transport = createTransport({
    host,
    port,
    secure: encryption === 'tls',
    requireTLS: encryption === 'starttls',
    ignoreTLS: encryption === 'none',
    ...(login ? { auth: { user: login.user, pass: login.password } } : {}),
    connectionTimeout: ANSWER_MS,
    greetingTimeout: ANSWER_MS,
    socketTimeout: ANSWER_MS,
    // A message is a few lines of ours: nothing is read from files or fetched for it.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        await transport.sendMail({ from, to: [...to], subject, text });
        return;
      } catch (error) {
        const { responseCode = 0, code } = error as { responseCode?: number; code?: string };
        const isRefused = responseCode >= 500 || code === 'EAUTH' || code === 'EENVELOPE';
        if (isRefused || attempt >= TRIES) throw error;
      }
    }
  } finally {
    transport.close();
  }
}
