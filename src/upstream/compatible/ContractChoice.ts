/**
 * Which contract of a server with two of them serves a request: chat completions or Responses.
 *
 * With `auto` it is the contract of the request itself, so that neither is translated. What the server's list of models says wins, and a
 * server that has no `/responses` is not asked for it again for ten minutes.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ServingContract } from "../../contracts/names.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { isRecord } from "../../domain/json.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import { MissingEndpoint } from "../server/MissingEndpoint.ts"
import { mostListed } from "../server/modelList.ts"
import type { ServerSettings } from "../server/ServerOptions.ts"

/** A contract that serves a request. */
export type Serving = Exclude<ServingContract, "auto">

/** Milliseconds after which a list of models is read again, and that a request waits for it. */
const listedFor = 10 * 60_000
const longestRead = 5_000

const contractsIn = (endpoints: unknown): ReadonlySet<Serving> => {
  const names = Array.isArray(endpoints) ? endpoints.filter((name) => typeof name === "string") : []
  const found = new Set<Serving>()
  if (names.some((name) => name.endsWith("chat/completions"))) found.add("openai")
  if (names.some((name) => /(?:^|\/)responses$/.test(name))) found.add("responses")
  return found
}

/** The contracts of a server's models, by the server's own names, as far as its list of models says so. */
const contractsOf = (list: unknown): ReadonlyMap<string, ReadonlySet<Serving>> => {
  const entries: unknown = isRecord(list) ? list["data"] : list
  const found = new Map<string, ReadonlySet<Serving>>()
  for (const entry of Array.isArray(entries) ? entries.slice(0, mostListed) : []) {
    if (!isRecord(entry) || typeof entry["id"] !== "string") continue
    found.set(entry["id"], contractsIn(entry["supported_endpoints"]))
  }
  return found
}

/** Chooses the contract of each request to one server. */
export class ContractChoice {
  readonly #general: ServingContract
  readonly #entries: ReadonlyMap<string, ServingContract>
  readonly #names: ReadonlyMap<string, string>
  #listed: ReadonlyMap<string, ReadonlySet<Serving>> = new Map()
  /** Monotonic milliseconds. */
  #readAt = -Infinity
  readonly #reading = Semaphore.makeUnsafe(1)
  /** Whether the server has turned out to have no `/responses`. */
  readonly responses = new MissingEndpoint()

  constructor({ contract, models }: Pick<ServerSettings, "contract" | "models">, usual: Serving) {
    this.#general = contract ?? usual
    this.#entries = new Map(models.flatMap(({ contract, id }) => contract === undefined ? [] : [[id, contract]]))
    this.#names = new Map(models.map(({ id, model }) => [id, model]))
  }

  /** The contract of all requests; `undefined` if it depends on the model or on the request. */
  get only(): Serving | undefined {
    const all = new Set([this.#general, ...this.#entries.values()])
    const [first] = all
    return all.size > 1 || first === "auto" ? undefined : first
  }

  /** The contract of models that the configuration does not name. */
  get usual(): Serving {
    return this.#general === "responses" ? "responses" : "openai"
  }

  get isAuto(): boolean {
    return this.#general === "auto" || [...this.#entries.values()].includes("auto")
  }

  /** The contract that serves a request at this moment, in monotonic milliseconds. */
  contractOf({ id }: Pick<UpstreamModel, "id">, conversation: Conversation, now: number): Serving {
    const contract = this.#entries.get(id) ?? this.#general
    if (contract !== "auto") return contract
    const listed = this.#listed.get(this.#names.get(id) ?? id)
    if (listed?.size === 1) return [...listed][0]!
    const isOwn = conversation.vendorFields?.vendor === "responses"
    return isOwn && !this.responses.isMissing(now) ? "responses" : "openai"
  }

  /** Reads the server's list of models if it has not been read lately. A list that fails says nothing. */
  read(list: Effect.Effect<unknown, unknown>, now: number): Effect.Effect<void> {
    return now < this.#readAt + listedFor ? Effect.void : this.#reading.withPermit(Effect.suspend(() => {
      if (now < this.#readAt + listedFor) return Effect.void
      return Effect.matchEager(Effect.timeoutOption(list, longestRead), {
        onFailure: () => {
          this.#readAt = now
        },
        onSuccess: (found) => {
          this.#readAt = now
          if (found._tag === "Some") this.#listed = contractsOf(found.value)
        }
      })
    }))
  }
}
