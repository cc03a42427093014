import type { IncomingMessage } from 'node:http';

/** What only customers see: a form to log in, and a page of orders that wants the cookie which the form gives. */

export const LOGIN_PATH = '/account/login';
export const ORDERS_PATH = '/account/orders';
const VISITOR = 'visitor=harbour-guest';
/** A name and a password; whoever sends more wants something else. */
const FORM_BYTES_MAX = 1_024;

export const LOGIN_HTML = `<h1>Log in</h1>
<form action="${LOGIN_PATH}" method="post">
<p><label>Name <input name="user"></label> <label>Password <input name="password" type="password"></label> <button>Log in</button></p>
</form>
<p>This is a demonstration: the name is guest, and so is the password.</p>`;

const ORDERS = [
  ['2026-0301', 'Oak Desk Lamp', '€129.00'],
  ['2026-0417', 'Linen Tea Towel', '€14.50'],
  ['2026-0602', 'Copper Kettle', '€89.00'],
];

export const ORDERS_HTML = `<h1>Your orders</h1>
<table class="orders"><tr><th>Order</th><th>Product</th><th>Total</th></tr>
${ORDERS.map(([id, product, total]) => `<tr class="order"><td class="id">${id}</td><td class="name">${product}</td><td class="total">${total}</td></tr>`).join('\n')}
</table>`;

export function isLoggedIn({ headers }: IncomingMessage): boolean {
  return (headers.cookie ?? '').split(/;\s*/).includes(VISITOR);
}

/** Reads the form, and says where to go next. */
export async function logIn(request: IncomingMessage): Promise<Record<string, string>> {
  let form = '';
  for await (const chunk of request) {
    form += chunk;
    if (form.length > FORM_BYTES_MAX) return { Location: LOGIN_PATH };
  }
  const fields = new URLSearchParams(form);
  if (fields.get('user') !== 'guest' || fields.get('password') !== 'guest') return { Location: LOGIN_PATH };
  return { Location: ORDERS_PATH, 'Set-Cookie': `${VISITOR}; Path=/; HttpOnly; SameSite=Lax` };
}
