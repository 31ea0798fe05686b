/**
 * Decodes the facts about models: those of an entry, and `model_facts`. There may be thousands of the latter, so decoding yields to other
 * fibers, and an unchanged group is decoded once.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { factNames, type FactTable, inOrder, makeFactTable, type ModelFacts, noFacts } from "../domain/modelFacts.ts"
import { normalizeModelName } from "../domain/models.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import { forEachCooperatively, isJsonObject } from "./json.ts"
import { ModelFactsEntry, mostModelFacts } from "./schema.ts"

const decodeEntry = Schema.decodeUnknownResult(ModelFactsEntry)
const tables = new WeakMap<object, FactTable>()

/** Cost of decoding the facts of a model, in characters (`forEachCooperatively`). */
const entryWeight = 2048

/** The facts among the fields of an entry, with lists in their order and texts without surrounding blanks; `undefined` without any. */
export const factsIn = (entry: ModelFacts): ModelFacts | undefined => {
  const known = factNames.filter((name) => entry[name] !== undefined)
  if (known.length === 0) return undefined
  const { description, display_name, efforts, input, output } = entry
  return {
    ...Object.fromEntries(known.map((name) => [name, entry[name]])),
    ...(input === undefined ? {} : { input: inOrder.modalities(input) }),
    ...(output === undefined ? {} : { output: inOrder.modalities(output) }),
    ...(efforts === undefined ? {} : { efforts: inOrder.efforts(efforts) }),
    ...(display_name === undefined ? {} : { display_name: display_name.trim() }),
    ...(description === undefined ? {} : { description: description.trim() })
  }
}

/** Decodes `model_facts`; adds what is wrong to `faults`. */
export const decodeModelFacts = Effect.fnUntraced(function*(
  raw: Schema.Json | undefined,
  faults: Array<Fault>
): Effect.fn.Return<FactTable> {
  if (raw === undefined) return noFacts
  if (!isJsonObject(raw)) {
    faults.push(fault("model_facts", "must be an object"))
    return noFacts
  }
  const known = tables.get(raw)
  if (known !== undefined) return known
  const found: Array<Fault> = []
  const facts = new Map<string, ModelFacts>()
  const entries = Object.entries(raw)
  if (entries.length > mostModelFacts) found.push(fault("model_facts", `must have at most ${mostModelFacts} entries`))
  yield* forEachCooperatively(entries.slice(0, mostModelFacts), ([written, entry]) => {
    const name = normalizeModelName(written)
    const wrong = (rule: string) => found.push(fault(`model_facts.${written}`, rule))
    if (name === "") found.push(fault("model_facts", "must not have an empty name"))
    if (name.slice(0, -1).includes("*")) wrong("may have * at its end only")
    if (facts.has(name)) wrong("is named twice, but for case and blanks")
    const decoded = decodeEntry(entry, { errors: "all" })
    if (Result.isFailure(decoded)) found.push(...faultsOf(decoded.failure, ["model_facts", written]))
    else facts.set(name, factsIn(decoded.success) ?? {})
    return entryWeight
  })
  faults.push(...found)
  const table = makeFactTable(facts)
  if (found.length === 0) tables.set(raw, table)
  return table
})
