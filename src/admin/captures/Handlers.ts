/**
 * Serves packet captures. Bodies may be megabytes each, so the reply is written one item at a time.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { jsonText } from "../../http/reply.ts"
import { makeLarge } from "../../http/WorkLimit.ts"
import { bytesOfRounds, type CapturedRound, responseText, type RoundSummary } from "../../recordings/CapturedRound.ts"
import { Captures } from "../../recordings/Captures.ts"
import { logChange } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { itemsAsTheyAre, makeNodeItems, type NodeItem, type NodeItems, type NodeList, readItems } from "../nodeItems.ts"
import { noQuestion } from "../nodes/Query.ts"
import { AdminCapturesGroup, type CaptureItem, type CaptureSummary } from "./Api.ts"

type Names = Pick<NodeItems, "named" | "node"> & {
  /** Items name their upstream. */
  readonly showsUpstreams: () => boolean
}

const headOf = (round: Omit<CapturedRound, "requestBody" | "bytes">, { showsUpstreams, named, node }: Names) => {
  const id = node()
  return {
    id: named(round.id),
    created_at: Math.floor(round.createdAt / 1000),
    label: round.label,
    url: round.url,
    ...(showsUpstreams() ? { upstream: round.upstream } : {}),
    account_id: round.account,
    status_code: round.status,
    response_truncated: round.truncated,
    chain_key: named(round.chainKey),
    ...(round.cause === undefined ? {} : { cause: round.cause }),
    ...(id === undefined ? {} : { node: id })
  }
}

const itemOf = (round: CapturedRound, names: Names): typeof CaptureItem.Type => ({
  ...headOf(round, names),
  request_body: round.requestBody,
  response_body: responseText(round)
})

const summaryOf = (round: RoundSummary, names: Names): typeof CaptureSummary.Type => ({
  ...headOf(round, names),
  request_bytes: round.requestBytes,
  response_bytes: round.responseBytes,
  request_id: round.requestId,
  closed: round.closed
})

/** The question to each node for its rounds, in full or without bodies. */
const listKind = {
  name: "captures",
  question: Schema.Literals(["", "summary"]),
  head: noQuestion,
  items: itemsAsTheyAre
}

/** The question for a round by its id. The answer is JSON that is passed on as it is. */
const oneQuery = { name: "capture", question: Schema.String, answer: Schema.String }

const unknown = gatewayError("not_found", "There is no capture of this id")

export const AdminCapturesHandlers = adminHandlers(AdminCapturesGroup, function*() {
  const captures = yield* Captures
  const store = yield* ConfigStore
  const nodes = yield* makeNodeItems
  const names: Names = { ...nodes, showsUpstreams: () => store.now().route_table.showsUpstreams }

  /** The rounds of this node; the question `summary` asks for them without bodies. */
  const local = Effect.fnUntraced(
    function*(question: typeof listKind.question.Type): Effect.fn.Return<NodeList<"", string>> {
      const summary = question === "summary"
      const rounds: ReadonlyArray<CapturedRound | RoundSummary> = summary
        ? yield* captures.summaries
        : yield* captures.list
      const items: Array<NodeItem<string>> = []
      for (const [i, round] of rounds.entries()) {
        if (i > 0 && !summary) yield* Effect.yieldNow
        const item = "bytes" in round ? itemOf(round, names) : summaryOf(round, names)
        items.push({ at: round.createdAt, place: -i, value: JSON.stringify(item) })
      }
      return { head: "", items }
    }
  )
  // Bodies are in memory as the texts of rounds, and as the reply that joins them.
  const merged = nodes.merged(
    listKind,
    (question) =>
      question === "summary" ?
        local(question) :
        Effect.flatMap(captures.summaries, (rounds) => makeLarge(2 * bytesOfRounds(rounds), local(question)))
  )

  /** One round of this node, as JSON. */
  const detail = Effect.fnUntraced(function*(id: string) {
    const found = (yield* captures.summaries).filter((round) => round.id === id)
    return yield* makeLarge(
      2 * bytesOfRounds(found),
      Effect.flatMap(captures.round(id), (round) =>
        round === undefined
          ? Effect.fail(unknown)
          : Effect.succeed(
            JSON.stringify({ ...itemOf(round, names), request_id: round.requestId, closed: round.closed })
          ))
    )
  })
  const find = nodes.one(oneQuery, detail)
  const clear = nodes.everywhere("clear captures", captures.clear)

  return {
    list: Effect.fnUntraced(function*({ query }) {
      const { enabled, limit, max_body_bytes } = (yield* store.current).captures
      const { items, missing } = yield* merged(query.summary === "true" ? "summary" : "")
      const head = JSON.stringify({ enabled, limit, max_body_bytes, ...nodes.missingNodes(missing) }).slice(0, -1)
      return jsonText(`${head},"items":[${readItems(items).values.join(",")}]}`)
    }),
    get: Effect.fnUntraced(function*({ params }) {
      const text = yield* find(params.id, (own) => own)
      return text === undefined ? yield* unknown : jsonText(text)
    }),
    clear: () =>
      clear.pipe(
        Effect.tap(logChange("the captures were cleared")),
        Effect.map((missing) => ({ success: true as const, detail: "capture logs cleared" as const, ...missing }))
      )
  }
})
