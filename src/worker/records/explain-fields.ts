import type { Document, Element } from 'domhandler';
import type { FieldSpec } from '../../core/job-schema/job.ts';
import { getOwn } from '../../core/values/own-property.ts';
import type { Page } from '../page/page.ts';
import { TreeSearch } from '../page/tree-search.ts';
import { type FieldPlan, planFields } from './field-plan.ts';

/** What the selector of one field matches on a page. */
export interface FieldMatch {
  /** With the fields around it: `offers.price`. */
  field: string;
  selector: string;
  /** Elements; null where no selector is used, but JSON-LD or a pattern. */
  matches: number | null;
  /** Text or attribute of the first, before it is converted. */
  first: string | null;
}

const NO_FIELDS: FieldMatch[] = [];

/** For people who write selectors: the page is searched once more, field by field. */
export function explainFields(page: Page, select: Record<string, FieldSpec | string>): FieldMatch[] {
  const plans = planFields(select, null);
  if (plans.length === 0) return NO_FIELDS;
  const search = new TreeSearch();
  const explain = (fields: readonly FieldPlan[], roots: readonly (Document | Element)[], scoped: boolean) =>
    fields.flatMap((plan): FieldMatch[] => {
      const { origin, path, attr } = plan;
      const selector = shownOrigin(plan);
      if (origin.kind === 'data' || (origin.kind === 'here' && !plan.fields))
        return [{ field: path, selector, matches: null, first: null }];
      const found = origin.kind === 'css' ? elementsOf(origin.css, roots, scoped) : roots;
      const first = found.find((node): node is Element => 'attribs' in node);
      const text =
        first && (attr === undefined ? search.textOf(first) : (getOwn(first.attribs, attr) ?? null));
      const own = {
        field: path,
        selector,
        matches: found.length,
        first: plan.fields ? null : (text ?? null),
      };
      return plan.fields ? [own, ...explain(plan.fields, found, scoped || origin.kind === 'css')] : [own];
    });

  function elementsOf(css: string, roots: readonly (Document | Element)[], scoped: boolean): Element[] {
    search.begin();
    const query = search.compile(css, scoped);
    return roots.flatMap((root) => search.every(query, root));
  }

  return explain(plans, [page.document], false);
}

function shownOrigin({ spec, origin, isMeta }: FieldPlan): string {
  const attr = spec.attr === undefined ? '' : `@${spec.attr}`;
  if (isMeta) return `meta ${spec.meta}`;
  if (origin.kind === 'css') return `${origin.css}${attr}`;
  if (spec.jsonLd !== undefined) return `JSON-LD ${spec.jsonLd}`;
  return spec.regex === undefined ? attr : `/${spec.regex}/`;
}
