/**
 * A list of forms, made ready for looking up where one may begin.
 */
import type { Form } from "./form.ts"
import { lineStartsOf, type Trigger } from "./prose.ts"

export interface Grammar {
  /** The forms by what begins them, in their order. */
  readonly at: { readonly [K in Trigger]: ReadonlyArray<Form> }
  /** The bound while it is not decided which form it can be. */
  readonly bounds: { readonly [K in Trigger]: number }
  /** The forms, in their order, that a tag of this name may begin; which of them it does is for their claims to say. */
  readonly tags: (name: string) => ReadonlyArray<Form>
  /** The keys behind the brace with which forms begin. */
  readonly keys: { readonly [K in "brace" | "bracket"]: ReadonlySet<string> }
  /** What the characters at the start of a line are. */
  readonly lineStarts: Uint8Array
}

const byTrigger = <A>(of: (trigger: Trigger) => A): { readonly [K in Trigger]: A } => ({
  tag: of("tag"),
  brace: of("brace"),
  bracket: of("bracket"),
  line: of("line")
})

export const grammarOf = (forms: ReadonlyArray<Form>): Grammar => {
  const at = byTrigger((trigger) => forms.filter((form) => form.opening.at === trigger))
  const mayBe = (name: string) => ({ opening }: Form): boolean =>
    opening.at === "tag" && (!("names" in opening) || opening.names.includes(name))
  const named = at.tag.flatMap(({ opening }) => opening.at === "tag" && "names" in opening ? opening.names : [])
  const tags = new Map(named.map((name) => [name, at.tag.filter(mayBe(name))]))
  const unnamed = at.tag.filter(({ opening }) => !("names" in opening))
  return {
    at,
    bounds: byTrigger((trigger) => Math.max(0, ...at[trigger].map((form) => form.bound))),
    tags: (name) => tags.get(name) ?? unnamed,
    keys: {
      brace: new Set(at.brace.flatMap(({ opening }) => opening.at === "brace" ? [...opening.keys] : [])),
      bracket: new Set(at.bracket.flatMap(({ opening }) => opening.at === "bracket" ? [...opening.keys ?? []] : []))
    },
    lineStarts: lineStartsOf(
      at.line.flatMap(({ opening }) => opening.at === "line" ? [opening.word.charCodeAt(0)] : [])
    )
  }
}
