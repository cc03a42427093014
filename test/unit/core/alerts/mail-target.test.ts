import { expect, test } from 'vitest';
import { mailTargetText, parseMailTarget } from '../../../../src/core/alerts/mail-target.ts';

test.each([
  ['smtps://u%40x:p%3Aw@smtp.example?to=a@b.example', 'tls', 465, 'u@x', 'p:w'],
  ['smtp://u:p@smtp.example?to=a@b.example', 'starttls', 587, 'u', 'p'],
  ['smtp://u:p@127.0.0.1:2525?to=a@b.example', 'none', 2525, 'u', 'p'],
  ['smtp://[::1]?to=a@b.example', 'none', 25, undefined, undefined],
  ['smtp://smtp.example?to=a@b.example&starttls=no', 'none', 25, undefined, undefined],
])('%s', (text, encryption, port, user, password) => {
  const target = parseMailTarget(text)!;
  expect(target).toMatchObject({ encryption, port, from: 'a@b.example', to: ['a@b.example'] });
  expect([target.login?.user, target.login?.password]).toEqual([user, password]);
});

test.each([
  'smtp.example',
  'http://smtp.example?to=a@b.example',
  'smtps://smtp.example',
  'smtps://smtp.example?to=nobody',
  'smtps://smtp.example?to=a@b.example%0d%0aBcc:x@y.example',
  'smtps://smtp.example?to=a@b.example&cc=c@d.example',
  'smtp://smtp.example?to=a@b.example&starttls=maybe',
  // A password in the clear.
  'smtp://u:p@smtp.example?to=a@b.example&starttls=no',
])('refuses %s', (text) => {
  expect(parseMailTarget(text)).toBeNull();
});

test('is shown without its login', () => {
  const target = parseMailTarget(
    'smtps://u:secret@smtp.example?to=a@b.example,c@d.example&from=s@b.example',
  )!;
  expect(mailTargetText(target)).toBe('a@b.example, c@d.example by smtp.example:465');
});
