import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, expect, test } from 'vitest';
import { sendMail } from '../../../src/app/send-mail.ts';
import { parseMailTarget } from '../../../src/core/alerts/mail-target.ts';
import { createIssuer } from '../../../src/sites/hostile/certificates.ts';

/** Against a real SMTP server on this machine. */

interface Received {
  from: string;
  to: string[];
  text: string;
  user: unknown;
  isEncrypted: boolean;
}

const servers: SMTPServer[] = [];
const DAY_MS = 86_400_000;
const issuer = createIssuer('Mail test', new Date());
const { key, cert } = issuer.issue({
  names: ['127.0.0.1'],
  notBefore: new Date(Date.now() - DAY_MS),
  notAfter: new Date(Date.now() + DAY_MS),
});
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise<void>((resolve) => server.close(() => resolve()));
});

async function startServer(options: SMTPServerOptions = {}) {
  const received: Received[] = [];
  const server = new SMTPServer({
    authOptional: true,
    key,
    cert,
    onAuth: ({ username, password }, _about, done) =>
      password === 'right' ? done(null, { user: username! }) : done(new Error('wrong password')),
    onData(stream, about, done) {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = about.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(parts).toString(),
          user: about.user,
          isEncrypted: about.secure,
        });
        done();
      });
    },
    ...options,
  });
  servers.push(server);
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { received, port: (server.server.address() as AddressInfo).port };
}

const MAIL = { subject: '[seine] disk-low firing\r\nBcc: x@y.example', text: 'a line\n.\nüber\n' };

test('a message arrives whole with its login, and a line in its subject adds no header', async () => {
  const { received, port } = await startServer({ allowInsecureAuth: true, disabledCommands: ['STARTTLS'] });
  const url = `smtp://ops:right@127.0.0.1:${port}?to=a@b.example,c@d.example&from=seine@b.example`;
  await sendMail(parseMailTarget(url)!, MAIL);
  expect(received).toMatchObject([
    { from: 'seine@b.example', to: ['a@b.example', 'c@d.example'], user: 'ops', isEncrypted: false },
  ]);
  const [head, body] = received[0]!.text.split('\r\n\r\n');
  expect(head).not.toMatch(/^bcc:/im);
  expect(head).toMatch(/^Subject: \[seine\] disk-low firing/m);
  expect(body).toContain('a line\r\n.\r\n=C3=BCber');
});

test('a server without STARTTLS gets neither password nor message when encryption is wanted', async () => {
  const { received, port } = await startServer({ allowInsecureAuth: true, disabledCommands: ['STARTTLS'] });
  const target = parseMailTarget(`smtp://ops:right@127.0.0.1:${port}?to=a@b.example&starttls=yes`)!;
  expect(target.encryption).toBe('starttls');
  await expect(sendMail(target, MAIL)).rejects.toThrow(/STARTTLS|TLS/);
  expect(received).toEqual([]);
});

test('a certificate that nobody vouches for is refused, with STARTTLS and with TLS', async () => {
  for (const [secure, scheme] of [
    [false, 'smtp'],
    [true, 'smtps'],
  ] as const) {
    const { received, port } = await startServer({ secure });
    const target = parseMailTarget(`${scheme}://ops:right@127.0.0.1:${port}?to=a@b.example&starttls=yes`)!;
    await expect(sendMail(target, MAIL)).rejects.toThrow(/certificate|self.signed|altnames/i);
    expect(received).toEqual([]);
  }
});

test('with a certificate that is trusted, login and message are encrypted', async () => {
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, issuer.cert]);
  try {
    for (const [secure, scheme] of [
      [false, 'smtp'],
      [true, 'smtps'],
    ] as const) {
      const { received, port } = await startServer({ secure });
      const url = `${scheme}://ops:right@127.0.0.1:${port}?to=a@b.example&starttls=yes`;
      await sendMail(parseMailTarget(url)!, MAIL);
      expect(received).toMatchObject([{ user: 'ops', isEncrypted: true }]);
    }
  } finally {
    setDefaultCACertificates(trusted);
  }
});

test('what the server refuses is told at once, and not tried again', async () => {
  let logins = 0;
  const { port } = await startServer({
    allowInsecureAuth: true,
    onAuth: (_auth, _about, done) => {
      logins++;
      done(new Error('wrong password'));
    },
  });
  const target = parseMailTarget(`smtp://ops:wrong@127.0.0.1:${port}?to=a@b.example`)!;
  await expect(sendMail(target, MAIL)).rejects.toThrow(/wrong password/);
  expect(logins).toBe(1);
});
