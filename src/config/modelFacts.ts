/**
 * Decodes the facts about models: those of an entry, and `model_facts`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { factNames, inOrder, type ModelFacts } from "../domain/modelFacts.ts"
import { namedEntries } from "./namedEntries.ts"
import { ModelFactsEntry, mostModelFacts } from "./schema.ts"

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

const decodeEntry = Schema.decodeUnknownResult(ModelFactsEntry)

/** Decodes `model_facts`; adds what is wrong to `faults`. */
export const decodeModelFacts = namedEntries({
  group: "model_facts",
  most: mostModelFacts,
  isSetting: () => false,
  decode: (entry) => Result.map(decodeEntry(entry, { errors: "all" }), (facts) => factsIn(facts) ?? {})
})
