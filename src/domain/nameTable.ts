/**
 * Values by the names of models, as `prices` and `model_facts` name them: `upstream/model`, a model's id, or the beginning of either with
 * `*`. Pure.
 */
import { normalizeModelName } from "./models.ts"

/** Values indexed by names in normal form. */
export interface NameTable<out A> {
  readonly exact: ReadonlyMap<string, A>
  /** Names that ended in `*`, without it; the longest first. */
  readonly prefixes: ReadonlyArray<readonly [prefix: string, value: A]>
}

/** A table without a name. */
export const noNames: NameTable<never> = { exact: new Map<string, never>(), prefixes: [] }

/** True for a table without a name. */
export const hasNoNames = ({ exact, prefixes }: NameTable<unknown>): boolean =>
  exact.size === 0 && prefixes.length === 0

/** Indexes values by names in normal form. */
export const makeNameTable = <A>(entries: Iterable<readonly [name: string, value: A]>): NameTable<A> => {
  const exact = new Map<string, A>()
  const prefixes: Array<readonly [string, A]> = []
  for (const [name, value] of entries) {
    if (name.endsWith("*")) prefixes.push([name.slice(0, -1), value])
    else exact.set(name, value)
  }
  return { exact, prefixes: prefixes.sort(([a], [b]) => b.length - a.length) }
}

/** A vendor's name of a model between what Bedrock adds: regions, the vendor and a version. */
const ofCloud = /^(?:[a-z]{2,6}\.)?anthropic\.(.+?)(?:-v\d+(?::\d+)?)?$/

/**
 * The vendor's name of a model: without its publisher, as hosts of many vendors' models write it (`openai/gpt-5`), and without what clouds
 * add (`eu.anthropic.claude-sonnet-4-5-20250929-v1:0`).
 */
const vendorsName = (name: string): string => name.slice(name.lastIndexOf("/") + 1).replace(ofCloud, "$1")

/** The date of a release at the end of a model's name. Vertex AI writes `@` before it. */
const date = /[-@]20\d\d-?\d\d-?\d\d$/

/** The value of a model by its vendor's own name. A release by its date has that of its name without the date, unless it has its own. */
export const findOfVendor = <A>({ exact }: NameTable<A>, served: string): A | undefined => {
  const name = vendorsName(served)
  return exact.get(name) ?? exact.get(name.replace(date, ""))
}

/** The names of a model of an upstream. */
export interface ModelNames {
  readonly upstream: string
  readonly model: string
  /** The server's own name of it, if that is another one. */
  readonly served: string | undefined
  /** The gateway's name for what was asked for, if it belongs to a route. */
  readonly asked: string | undefined
}

/**
 * What `take` makes of the first value that it does not leave out, with the name of that value's entry; `undefined` without one.
 *
 * Exact names come first, in this order: the gateway's name of a route; `upstream/model`; the model's id; the server's own name, with and
 * without the upstream. Of the prefixes, the longest one of `upstream/` comes first, then the longest one of the other names.
 */
export const findNamed = <A, B>(
  table: NameTable<A>,
  { asked, model, served, upstream }: ModelNames,
  take: (value: A) => B | undefined
): { readonly entry: string; readonly found: B } | undefined => {
  if (hasNoNames(table)) return undefined
  const id = normalizeModelName(model)
  const target = `${upstream}/${id}`
  const name = asked === undefined ? id : normalizeModelName(asked)
  const own = served === undefined ? id : normalizeModelName(served)
  const isOther = name !== id && name !== target
  const within = own === id ? [target] : [target, `${upstream}/${own}`]
  const names = own === id ? [id] : [id, own]
  for (const entry of [...isOther ? [name] : [], target, id, ...within.slice(1), ...names.slice(1)]) {
    const value = table.exact.get(entry)
    const found = value === undefined ? undefined : take(value)
    if (found !== undefined) return { entry, found }
  }
  if (isOther) names.push(name)
  const begins = (prefix: string) => (entry: string) => entry.startsWith(prefix)
  const isWithin = (prefix: string) => prefix.length > upstream.length && within.some(begins(prefix))
  for (const fits of [isWithin, (prefix: string) => names.some(begins(prefix))]) {
    for (const [prefix, value] of table.prefixes) {
      const found = fits(prefix) ? take(value) : undefined
      if (found !== undefined) return { entry: `${prefix}*`, found }
    }
  }
  return undefined
}
