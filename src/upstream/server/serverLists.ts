/** What a server says about its models: its list, which also tells whether it takes a key. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Contract } from "../../contracts/Contract.ts"
import { parseJson } from "../../contracts/shared/json.ts"
import { isRecord } from "../../domain/json.ts"
import type { ServersModel } from "../../domain/routes.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Exchange } from "../Exchange.ts"
import { type ServerAnswers, slowestBody } from "./serverAnswers.ts"

/** Bytes of a list of models. */
const longestList = 4 * 1024 * 1024

/** Adds what a list of models leaves out. `body` is the list's JSON. */
export type AskMore = (
  models: ReadonlyArray<ServersModel>,
  body: unknown,
  token: string | undefined
) => Effect.Effect<ReadonlyArray<ServersModel>>

/** The server that is asked. */
interface ListingServer extends Pick<Contract, "isError">, ServerAnswers {
  /** Asks for what the server itself says, and waits for the head. */
  readonly ask: (
    method: "GET",
    path: string,
    token: string | undefined
  ) => Effect.Effect<Exchange, UpstreamFailure, Scope.Scope>
  /** True for an address with the version of the API, or one that needs none. */
  readonly isVersioned: boolean
}

/** Asks one server for its models. */
export const makeServerLists = ({ ask, isAnswer, isError, isVersioned, readBody, refusal }: ListingServer) => {
  /**
   * Asks for the list of models at a path, which costs nothing. Without a list at a plausible address, the key is assumed to be valid.
   */
  const verify = (path: string) =>
    Effect.fnUntraced(function*(token: string | undefined) {
      const exchange = yield* ask("GET", path, token)
      const text = yield* readBody(exchange)
      const body = parseJson(text)
      const { status } = exchange
      const hasNoList = status === 404 || status === 405 || status === 501
      if (isAnswer(exchange) && !(isRecord(body) && isError(body))) return
      if (hasNoList && isVersioned) return
      return yield* yield* refusal("session", exchange, text, token)
    }, Effect.scoped)

  /**
   * Reads the server's list of models at a path. `read` finds the models in its JSON. `askMore` asks for what the list leaves out, in bounded
   * time.
   */
  const listModels = (
    path: string,
    read: (body: unknown) => ReadonlyArray<ServersModel> | undefined,
    askMore: AskMore | undefined
  ) =>
    Effect.fnUntraced(function*(token: string | undefined) {
      const exchange = yield* ask("GET", path, token)
      const text = yield* exchange.text(longestList, slowestBody)
      const body = parseJson(text)
      if (!isAnswer(exchange) || (isRecord(body) && isError(body))) {
        return yield* yield* refusal("session", exchange, text, token)
      }
      const models = read(body)
      if (models === undefined) {
        return yield* new UpstreamFailure({ phase: "session", kind: "malformed", message: "it answered with no list" })
      }
      return askMore === undefined ? models : yield* askMore(models, body, token)
    }, Effect.scoped)

  return { listModels, verify }
}
