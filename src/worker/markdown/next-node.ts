import { type ChildNode, type Element, isTag } from 'domhandler';

/** Steps through a tree in the order of the document, without recursion: a page can nest deeper than the call stack. */

export function nextNode(node: ChildNode, root: Element): ChildNode | null {
  if (isTag(node) && node.children.length > 0) return node.children[0]!;
  return nextBeyond(node, root);
}

/** The same, past what is inside the node. */
export function nextBeyond(node: ChildNode, root: Element): ChildNode | null {
  let at = node;
  while (at.next === null) {
    if (at.parent === null || at.parent === root) return null;
    at = at.parent as ChildNode;
  }
  return at.next;
}
