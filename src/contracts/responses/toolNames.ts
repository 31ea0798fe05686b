/**
 * The names under which the tools of a request are declared. An upstream knows only functions, so a tool of a namespace and a tool
 * of the vendor's own kinds need a name that no other tool of the request has. The renderer maps a call back by this name.
 */
import { hash } from "../shared/hash.ts"
import type { ClientToolType } from "./clientTools.ts"

/** A function or custom tool. */
export interface ToolTarget {
  readonly type: "function" | "custom"
  readonly namespace: string | undefined
  readonly name: string
}

/** One of the vendor's tools that the caller runs. */
export interface ClientTarget {
  readonly type: ClientToolType
}

/** What a declared function is to the caller. */
export type CallTarget = ToolTarget | ClientTarget

export const isClientTarget = (target: CallTarget): target is ClientTarget => !("name" in target)

/** The function of this name outside of namespaces. */
export const plainFunction = (name: string): ToolTarget => ({ type: "function", namespace: undefined, name })

/** The targets by declared name. Functions outside of namespaces are not among them. */
export type CallTargets = ReadonlyMap<string, CallTarget>

/** The longest name of a function, in characters: the vendors' limit. */
const longestName = 64

/** Joins a namespace and a name to a function's name. A name that is too long ends with a hash of the whole. */
const joined = (namespace: string, name: string): string => {
  const separator = namespace.endsWith("_") || name.startsWith("_") ? "" : "__"
  const whole = namespace + separator + name
  const clean = whole.replace(/[^a-zA-Z0-9_-]/g, "_")
  return clean.length <= longestName ? clean : `${clean.slice(0, longestName - 9)}_${hash(whole)}`
}

/** Names of one request. Bounded by the tools and calls of the request. */
export class ToolNames {
  readonly #targets = new Map<string, CallTarget>()
  readonly #names = new Map<string, string>()
  readonly #taken: Set<string>
  readonly #suffixes = new Map<string, number>()

  /** The names of the functions and custom tools outside of namespaces stay as they are. */
  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken)
  }

  get targets(): CallTargets {
    return this.#targets
  }

  /** Notes that calls of this name are calls of a custom tool. */
  addCustom(name: string): void {
    this.#targets.set(name, { type: "custom", namespace: undefined, name })
  }

  /** The name under which the target is declared, and in the history called. The same target has the same name. */
  of(target: CallTarget): string {
    const isClient = isClientTarget(target)
    if (!isClient && target.namespace === undefined) return target.name
    const key = isClient ? target.type : JSON.stringify([target.namespace, target.name])
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const name = this.#unique(isClient ? target.type : joined(target.namespace ?? "", target.name))
    this.#names.set(key, name)
    this.#taken.add(name)
    this.#targets.set(name, target)
    return name
  }

  /** The name itself, or with the first number that makes it unique. */
  #unique(name: string): string {
    if (!this.#taken.has(name)) return name
    for (let count = this.#suffixes.get(name) ?? 2;; count++) {
      const end = `_${count}`
      const numbered = name.slice(0, longestName - end.length) + end
      if (this.#taken.has(numbered)) continue
      this.#suffixes.set(name, count + 1)
      return numbered
    }
  }
}
