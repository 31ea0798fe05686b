/**
 * Imports the configuration of another gateway: from its text to a configuration of this one that passes the checks.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Fault } from "../../../config/ConfigError.ts"
import { decodeConfig } from "../../../config/decodeConfig.ts"
import { readModelFacts } from "../../../config/importModelFacts.ts"
import { readPrices } from "../../../config/importPrices.ts"
import { isJsonObject, type RawConfig } from "../../../config/json.ts"
import { isOwnVariable } from "../../../config/referenceNames.ts"
import { CurrentVariables } from "../../../config/references.ts"
import { fromCliProxyApi } from "./cliProxyApi.ts"
import { fromLiteLlm, type Variables } from "./litellm.ts"
import { Report } from "./Report.ts"
import { parseYaml } from "./yaml.ts"

/** The file cannot be imported. The message says why, with the lines of the report before it. */
export class ImportFailed extends Schema.TaggedError<ImportFailed>()("ImportFailed", { message: Schema.String }) {}

export interface Imported {
  /** A configuration that passes `check-config` where the variables that it refers to are set. */
  readonly raw: RawConfig
  readonly report: Report
}

/** The longest name of an object with which a place begins. */
const longestName = (within: object, place: string): string | undefined => {
  for (
    let end = place.length;
    end > 0;
    end = Math.max(place.lastIndexOf(".", end - 1), place.lastIndexOf("[", end - 1))
  ) {
    const name = place.slice(0, end)
    if (Object.hasOwn(within, name)) return name
  }
  return undefined
}

/** The keys that lead to what a fault names, as far as it exists. Names may have dots: the longest one that fits counts. */
const pathOf = (raw: Schema.Json, field: string): ReadonlyArray<string> => {
  const path: Array<string> = []
  let value: Schema.Json | undefined = raw
  let rest = field
  while (rest !== "" && typeof value === "object" && value !== null) {
    const index = /^\[(\d+)\]/.exec(rest)
    const within: Schema.Json = value
    const name: string | undefined = Array.isArray(within) ? index?.[1] : longestName(within, rest)
    if (name === undefined) break
    path.push(name)
    rest = rest.slice(index === null ? name.length : index[0].length).replace(/^\./, "")
    value = (within as { readonly [name: string]: Schema.Json })[name]
  }
  return path
}

/** The value without what the paths lead to. */
const without = (value: Schema.Json, paths: ReadonlyArray<ReadonlyArray<string>>): Schema.Json => {
  const byName = Map.groupBy(paths.filter((path) => path.length > 0), ([name]) => name!)
  const gone = new Set(paths.flatMap(([name, ...more]) => name !== undefined && more.length === 0 ? [name] : []))
  const kept = (name: string, item: Schema.Json): Schema.Json => {
    const inner = byName.get(name)
    return inner === undefined ? item : without(item, inner.map((path) => path.slice(1)))
  }
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => gone.has(String(index)) ? [] : [kept(String(index), item)])
  }
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) => gone.has(name) ? [] : [[name, kept(name, item)]])
  )
}

/** Rounds of checks. Each takes away a part of the result, so that one without faults comes after a few. */
const mostRounds = 100

/** What a file may have that no mapping foresees is taken away, until the result passes the checks. */
const passing = Effect.fnUntraced(function*(raw: RawConfig, report: Report) {
  let result = raw
  for (let round = 0; round < mostRounds; round++) {
    const faults: ReadonlyArray<Fault> = yield* decodeConfig(result, { duplicates: "keep-first" }).pipe(
      Effect.as([]),
      Effect.catchTag("ConfigInvalid", (error) => Effect.succeed(error.faults))
    )
    if (faults.length === 0) return result
    const paths = faults.map(({ field, message }) => {
      const path = pathOf(result, field)
      report.leftOut(
        `${field} of the result`,
        message.startsWith(field) ? `it ${message.slice(field.length).trim()}` : message
      )
      return path
    })
    result = without(result, paths) as RawConfig
  }
  return yield* new ImportFailed({ message: "the result does not pass the checks" })
})

/**
 * Reads the text of a file of another gateway. `variables` come from the import; every variable that is not the gateway's own counts as
 * set, since the gateway may have another environment.
 */
export const importText = Effect.fnUntraced(function*(
  gateway: "litellm" | "cliproxyapi",
  source: string,
  text: string,
  variables: Variables
): Effect.fn.Return<Imported, ImportFailed> {
  const parsed = parseYaml(text)
  if (Result.isFailure(parsed)) return yield* new ImportFailed({ message: `${source} ${parsed.failure}` })
  const file = parsed.success
  if (!isJsonObject(file)) return yield* new ImportFailed({ message: `${source} is no object` })
  const report = new Report()
  const draft = gateway === "litellm" ? fromLiteLlm(file, report, variables) : fromCliProxyApi(file, report)
  const { facts } = yield* readModelFacts(draft.infos)
  const built = draft.build(facts)
  const nothing = () =>
    new ImportFailed({
      message: [...report.lines, "no model of the file can be served here"].map((line) => `${source}: ${line}`).join(
        "\n"
      )
    })
  if (built === undefined) return yield* nothing()
  const { placeless, prices, taken } = yield* readPrices(built.costs)
  report.changed(
    "prices of the result",
    taken === 0
      ? "do not exist, since no model of the file has costs: model-gateway prices import reads LiteLLM's list of prices"
      : "come from the models with costs in the file: model-gateway prices check names the others"
  )
  if (built.raw["keys"] === undefined) {
    report.changed(
      "keys of the result",
      "do not exist: clients need keys of this gateway, which POST /admin/keys or the console makes"
    )
  }
  for (const name of placeless.keys()) report.leftOut(`the field ${name} of models`, "prices have no such unit")
  const raw = yield* passing(taken === 0 ? built.raw : { ...built.raw, prices, currency: "USD" }, report).pipe(
    Effect.provideService(CurrentVariables, (name) => isOwnVariable(name) ? null : `value of ${name}`)
  )
  if (!isJsonObject(raw["upstream"]) && !isJsonObject(raw["upstreams"])) return yield* nothing()
  return { raw, report }
})
