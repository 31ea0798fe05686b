/**
 * What is known of a model, with where it is from.
 */
import type { ComponentChildren } from "preact"
import { number } from "../../parts/format.ts"
import type { Texts } from "../../texts/en.ts"
import type { Model } from "./Price.tsx"

type Fact = NonNullable<Model["facts"][keyof Model["facts"]]>

const names = ["context_window", "max_output_tokens", "input", "output", "efforts", "tools", "schemas"] as const

const textOf = ({ value }: Fact, t: Texts["models"]["known"]): string =>
  typeof value === "object"
    ? value.length === 0 ? t.none : value.join(", ")
    : typeof value === "boolean"
    ? value ? t.yes : t.no
    : typeof value === "number"
    ? number(value)
    : value === "binding" || value === "advisory" || value === "none"
    ? t.bindings[value]
    : value

/** The facts of a model, each with its name. */
export const knownFacts = (
  { facts }: Model,
  t: Texts["models"]["known"]
): ReadonlyArray<readonly [name: string, value: ComponentChildren | undefined]> =>
  names.map((name) => {
    const fact = facts[name]
    return [
      t.facts[name],
      fact === undefined ? undefined : (
        <>
          {textOf(fact, t)} <span class="hint">{t.sources[fact.source]}</span>
        </>
      )
    ]
  })
