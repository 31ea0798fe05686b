/**
 * What the refusals of one server have shown of its models. A fact ends after an hour, after a success that contradicts it, and with the
 * driver, which a change of the upstream replaces. Nodes of a store share it (`sharedRefusals.ts`).
 */
import { keyOfPart, type RefusedPart } from "../../domain/refusedParts.ts"
import type { FamilyName } from "../../domain/VendorFields.ts"

/** What is known of a model, as its server is asked in a contract. */
export interface Fact {
  readonly contract: FamilyName
  readonly model: string
  readonly part: RefusedPart
  /** The words that refuse it. */
  readonly words: string
  /** Monotonic milliseconds. */
  readonly until: number
  /** Tokens of the prompt for each character of the body, where the prompt was counted. */
  readonly perCharacter: number
}

/** Models that are remembered, and facts of each; one more takes the place of the oldest. */
const mostModels = 1_000
const mostOfModel = 64

/** Adds to a map of bounded size. */
const put = <Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void => {
  map.delete(key)
  for (const oldest of map.keys()) {
    if (map.size < most) break
    map.delete(oldest)
  }
  map.set(key, value)
}

const placeOf = (contract: FamilyName, model: string): string => `${contract} ${model}`

export class LearnedRefusals {
  readonly #models = new Map<string, Map<string, Fact>>()
  #listener: ((fact: Fact, isOver: boolean) => void) | undefined

  /** Calls a function for each fact that this gateway itself learns, or finds contradicted; in the place of an earlier one. */
  listen(listener: (fact: Fact, isOver: boolean) => void): void {
    this.#listener = listener
  }

  /** All facts. `now`: monotonic milliseconds. */
  all(now: number): ReadonlyArray<Fact> {
    return Array.from(this.#models.values(), (facts) => [...facts.values()]).flat().filter(({ until }) => until > now)
  }

  /** The facts of a model. `now`: monotonic milliseconds. */
  of(contract: FamilyName, model: string, now: number): ReadonlyArray<Fact> {
    const facts = this.#models.get(placeOf(contract, model))
    if (facts === undefined) return []
    for (const [key, { until }] of facts) if (until <= now) facts.delete(key)
    return [...facts.values()]
  }

  has(contract: FamilyName, model: string): boolean {
    return this.#models.has(placeOf(contract, model))
  }

  learn(fact: Fact): void {
    this.put(fact)
    this.#listener?.(fact, false)
  }

  /** A success has contradicted a fact. */
  end(fact: Fact): void {
    this.drop(fact)
    this.#listener?.(fact, true)
  }

  /** Adds what another node has learned. */
  put(fact: Fact): void {
    const place = placeOf(fact.contract, fact.model)
    const facts = this.#models.get(place) ?? new Map<string, Fact>()
    put(facts, keyOfPart(fact.part), fact, mostOfModel)
    put(this.#models, place, facts, mostModels)
  }

  /** Removes what another node has found contradicted. */
  drop({ contract, model, part }: Pick<Fact, "contract" | "model" | "part">): void {
    this.#models.get(placeOf(contract, model))?.delete(keyOfPart(part))
  }
}
