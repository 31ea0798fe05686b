/**
 * Which API of a server with two of them serves a request: chat completions or Responses.
 *
 * With `auto` a request uses the API of its own style, so that neither is translated. What the server's list of models says wins, and a
 * server that has no `/responses` is not asked for it again for ten minutes.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ServerApi } from "../../contracts/names.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { isRecord } from "../../domain/json.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import { missingFor } from "../responses/driver.ts"
import { mostListed } from "../server/modelList.ts"
import type { ServerOptions } from "../server/ServerOptions.ts"

/** An API of a server. */
export type Api = Exclude<ServerApi, "auto">

/** Milliseconds after which a list of models is read again, and that a request waits for it. */
const listedFor = 10 * 60_000
const longestRead = 5_000

const apisIn = (endpoints: unknown): ReadonlySet<Api> | undefined => {
  if (!Array.isArray(endpoints)) return undefined
  const names = endpoints.filter((name) => typeof name === "string")
  const apis = new Set<Api>()
  if (names.some((name) => name.endsWith("chat/completions"))) apis.add("chat")
  if (names.some((name) => /(?:^|\/)responses$/.test(name))) apis.add("responses")
  return apis.size === 0 ? undefined : apis
}

/** The APIs of a server's models, by the server's own names, as far as its list of models says so. */
const apisOf = (list: unknown): ReadonlyMap<string, ReadonlySet<Api>> => {
  const entries: unknown = isRecord(list) ? list["data"] : list
  const found = new Map<string, ReadonlySet<Api>>()
  for (const entry of Array.isArray(entries) ? entries.slice(0, mostListed) : []) {
    if (!isRecord(entry) || typeof entry["id"] !== "string") continue
    const apis = apisIn(entry["supported_endpoints"])
    if (apis !== undefined) found.set(entry["id"], apis)
  }
  return found
}

/** Chooses the API of each request to one server. */
export class ApiChoice {
  readonly #general: ServerApi
  readonly #entries: ReadonlyMap<string, ServerApi>
  readonly #names: ReadonlyMap<string, string>
  #listed: ReadonlyMap<string, ReadonlySet<Api>> = new Map()
  /** Monotonic milliseconds. */
  #readAt = -Infinity
  #missingUntil = -Infinity
  readonly #reading = Semaphore.makeUnsafe(1)

  constructor({ api, models }: Pick<ServerOptions, "api" | "models">, usual: Api) {
    this.#general = api ?? usual
    this.#entries = new Map(models.flatMap((model) => model.api === undefined ? [] : [[model.id, model.api]]))
    this.#names = new Map(models.map(({ id, model }) => [id, model]))
  }

  /** The API of all requests; `undefined` if it depends on the model or on the style. */
  get only(): Api | undefined {
    const apis = new Set([this.#general, ...this.#entries.values()])
    const [first] = apis
    return apis.size > 1 || first === "auto" ? undefined : first
  }

  /** The API of models that the configuration does not name. */
  get usual(): Api {
    return this.#general === "responses" ? "responses" : "chat"
  }

  get isAuto(): boolean {
    return this.#general === "auto" || [...this.#entries.values()].includes("auto")
  }

  /** The API of a request at this moment, in monotonic milliseconds. */
  apiOf({ id }: Pick<UpstreamModel, "id">, conversation: Conversation, now: number): Api {
    const api = this.#entries.get(id) ?? this.#general
    if (api !== "auto") return api
    const listed = this.#listed.get(this.#names.get(id) ?? id)
    const own = conversation.vendorFields?.vendor === "responses" ? "responses" : "chat"
    if (listed?.size === 1) return [...listed][0]!
    return own === "responses" && now < this.#missingUntil ? "chat" : own
  }

  /** The server turned out to have no `/responses`. */
  lacksResponses(now: number): void {
    this.#missingUntil = now + missingFor
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
          if (found._tag === "Some") this.#listed = apisOf(found.value)
        }
      })
    }))
  }
}
