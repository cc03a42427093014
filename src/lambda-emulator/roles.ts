import { escapeHtml } from '../core/text/escape-html.ts';

/** The few calls of IAM that deploying needs, in its form-and-XML protocol. */

interface Role {
  name: string;
  arn: string;
  trust: string;
  policies: Map<string, string>;
  createdAt: number;
}

/** IAM tells Lambda of a new role only after a while. */
const KNOWN_AFTER_MS = 200;

interface IamReply {
  status: number;
  xml: string;
}

export class Roles {
  readonly #roles = new Map<string, Role>();

  canBeAssumed(arn: string): boolean {
    const role = [...this.#roles.values()].find((one) => one.arn === arn);
    return role !== undefined && performance.now() - role.createdAt >= KNOWN_AFTER_MS;
  }

  policiesOf(name: string): ReadonlyMap<string, string> {
    return this.#roles.get(name)?.policies ?? new Map();
  }

  answer(form: URLSearchParams): IamReply {
    const action = form.get('Action') ?? '';
    const name = form.get('RoleName') ?? '';
    const role = this.#roles.get(name);
    if (action === 'CreateRole') {
      if (role) return refuse(409, 'EntityAlreadyExists', `Role with name ${name} already exists.`);
      return done(action, roleXml(this.#create(name, form.get('AssumeRolePolicyDocument') ?? '')));
    }
    if (!role) return refuse(404, 'NoSuchEntity', `The role with name ${name} cannot be found.`);
    const policy = form.get('PolicyName') ?? '';
    switch (action) {
      case 'GetRole':
        return done(action, roleXml(role));
      case 'UpdateAssumeRolePolicy':
        role.trust = form.get('PolicyDocument') ?? '';
        return done(action, '');
      case 'PutRolePolicy':
        role.policies.set(policy, form.get('PolicyDocument') ?? '');
        return done(action, '');
      case 'GetRolePolicy': {
        const document = role.policies.get(policy);
        if (document === undefined)
          return refuse(404, 'NoSuchEntity', `The role policy with name ${policy} cannot be found.`);
        const text = encodeURIComponent(document);
        return done(
          action,
          `<RoleName>${escapeHtml(name)}</RoleName><PolicyName>${escapeHtml(policy)}</PolicyName><PolicyDocument>${text}</PolicyDocument>`,
        );
      }
      default:
        return refuse(400, 'InvalidAction', `Could not find operation ${action}`);
    }
  }

  #create(name: string, trust: string): Role {
    const arn = `arn:aws:iam::000000000000:role/${name}`;
    const role = { name, arn, trust, policies: new Map(), createdAt: performance.now() };
    this.#roles.set(name, role);
    return role;
  }
}

function roleXml({ name, arn, trust }: Role): string {
  return `<Role><Path>/</Path><RoleName>${escapeHtml(name)}</RoleName><RoleId>AROA${'A'.repeat(16)}</RoleId><Arn>${escapeHtml(arn)}</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate><AssumeRolePolicyDocument>${encodeURIComponent(trust)}</AssumeRolePolicyDocument></Role>`;
}

function done(action: string, result: string): IamReply {
  const xml = `<${action}Response xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><${action}Result>${result}</${action}Result><ResponseMetadata><RequestId>0</RequestId></ResponseMetadata></${action}Response>`;
  return { status: 200, xml };
}

function refuse(status: number, code: string, message: string): IamReply {
  return {
    status,
    xml: `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${escapeHtml(message)}</Message></Error><RequestId>0</RequestId></ErrorResponse>`,
  };
}
