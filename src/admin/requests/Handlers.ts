/**
 * Records of requests at work.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Nodes } from "../../cluster/nodes/Nodes.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { apiId, jsonText } from "../../http/reply.ts"
import type { RequestRecord } from "../../recordings/requests/RequestRecord.ts"
import { Requests } from "../../recordings/requests/Requests.ts"
import { logChange } from "../changes.ts"
import { makeNodeItems } from "../nodeItems.ts"
import { AdminRequestsGroup, type RequestItem } from "./Api.ts"
import { idOf, numberOf, viewDetail, viewItem } from "./view.ts"

const defaultLimit = 50
const mostItems = 200

const unknown = gatewayError(
  "not_found",
  "There is no record of this request; it may have been pushed out by later ones"
)

/** An empty parameter, as a form sends it, counts as absent. */
const given = (text: string | undefined): string | undefined => text === "" ? undefined : text

const isStatus = (record: RequestRecord, wanted: string): boolean => {
  const { status } = record.facts
  if (/^\dxx$/.test(wanted)) return String(status ?? "").startsWith(wanted[0]!)
  return /^\d+$/.test(wanted) ? String(status) === wanted : record.outcome === wanted
}

/** What a list is narrowed to; all that is given must fit. */
interface Filter {
  readonly status?: string | undefined
  readonly style?: string | undefined
  readonly model?: string | undefined
  readonly key?: string | undefined
  readonly account?: string | undefined
}

const fitting = (filter: Filter): (record: RequestRecord) => boolean => {
  const [status, style, model] = [given(filter.status), given(filter.style), given(filter.model)]
  const [key, account] = [given(filter.key), given(filter.account)]
  return (record) => {
    const { facts } = record
    return (status === undefined || isStatus(record, status)) &&
      (style === undefined || facts.style === style) &&
      (model === undefined || facts.requestedModel === model || facts.model === model) &&
      (key === undefined || record.key === key) &&
      (account === undefined || record.account === account)
  }
}

/** What is asked of each node for a page. */
const PageQuestion = Schema.fromJsonString(Schema.Struct({
  filter: Schema.Record(Schema.String, Schema.String),
  limit: Schema.Int,
  /** Where each node goes on; absent for the first page. A node that is not named has nothing more. */
  before: Schema.optionalKey(Schema.Record(Schema.String, Schema.Int))
}))

const NodeHead = Schema.fromJsonString(Schema.Struct({
  kept: Schema.Int,
  bytes: Schema.Int,
  /** There is more than what was given. */
  more: Schema.Boolean
}))

/** A cursor over several nodes: where each of them goes on. */
const Cursor = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Int))

const [writeQuestion, readQuestion] = [Schema.encodeSync(PageQuestion), Schema.decodeSync(PageQuestion)]
const [writeHead, readHead] = [Schema.encodeSync(NodeHead), Schema.decodeSync(NodeHead)]
const [writeCursor, readCursor] = [Schema.encodeSync(Cursor), Schema.decodeUnknownOption(Cursor)]

/** Before the first: the records of a node that gave none yet are all older. */
const newest = Number.MAX_SAFE_INTEGER

const notACursor = invalidRequest("cursor is none that a list gave", "cursor")

export const AdminRequestsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminRequestsGroup),
  "admin-requests",
  Effect.fnUntraced(function*(handlers) {
    const requests = yield* Requests
    const store = yield* ConfigStore
    const nodes = yield* makeNodeItems
    const self = yield* Nodes

    /** Where each node goes on after a cursor, which alone is a record's number. */
    const readBefore = (cursor: string): { readonly [node: string]: number } | undefined => {
      if (nodes.node() === undefined) {
        const number = numberOf(cursor)
        return number === undefined ? undefined : { [self.id]: number }
      }
      const read = readCursor(Buffer.from(cursor, "base64url").toString("utf8"))
      return read._tag === "None" ? undefined : read.value
    }

    const merged = nodes.merged("records", (question) =>
      Effect.sync(() => {
        const { before, filter, limit } = readQuestion(question)
        const from = before === undefined ? newest : before[self.id] ?? 0
        const { next, records } = requests.page(from, limit, fitting(filter))
        const items = records.map((record) => ({
          at: record.startedAt,
          place: record.number,
          json: JSON.stringify(viewItem(record, nodes.node()))
        }))
        return { head: writeHead({ ...requests.status(), more: next !== undefined }), items }
      }))

    /** The record of an id of this node's, or of a request's id, as JSON. */
    const detail = (id: string): Effect.Effect<string, GatewayError> =>
      Effect.suspend(() => {
        const number = numberOf(id)
        const record = (number === undefined ? undefined : requests.numbered(number)) ?? requests.named(id)
        return record === undefined
          ? Effect.fail(unknown)
          : Effect.succeed(JSON.stringify(viewDetail(record, nodes.node(), [Redacted.value(store.adminKey)])))
      })
    const clear = Effect.sync(() => requests.clear())
    nodes.peers.answers("record", detail)
    nodes.peers.answers("clear records", () => Effect.as(clear, ""))

    return handlers
      .handle(
        "list",
        Effect.fnUntraced(function*({ query }) {
          const { cursor, limit: wanted, ...filter } = query
          const before = given(cursor) === undefined ? undefined : readBefore(cursor!)
          if (given(cursor) !== undefined && before === undefined) return yield* notACursor
          const asked = wanted === undefined || wanted === "" ? defaultLimit : wanted
          const limit = Math.min(mostItems, Math.max(1, Math.trunc(asked)))
          const { heads, items, missing } = yield* merged(
            writeQuestion({ filter, limit, ...(before === undefined ? {} : { before }) })
          )
          const shown = items.slice(0, limit)
          const next: { [node: string]: number } = {}
          const sums = { kept: 0, bytes: 0 }
          for (const [node, head] of heads) {
            const { bytes, kept, more } = readHead(head)
            sums.kept += kept
            sums.bytes += bytes
            const last = shown.findLast((item) => item.node === node)
            const left = more || items.some((item, i) => i >= limit && item.node === node)
            if (left) next[node] = last?.place ?? before?.[node] ?? newest
          }
          const { enabled, limit: most, max_total_bytes } = store.unsafeCurrent().requests
          const isEnd = Object.keys(next).length === 0
          return {
            enabled,
            limit: most,
            ...sums,
            max_total_bytes,
            items: shown.map(({ json }) => JSON.parse(json) as typeof RequestItem.Type),
            next_cursor: isEnd
              ? null
              : nodes.node() === undefined
              ? idOf(next[self.id]!)
              : Buffer.from(writeCursor(next)).toString("base64url"),
            ...nodes.told(missing)
          }
        })
      )
      .handle(
        "get",
        Effect.fnUntraced(function*({ params: { id } }) {
          const elsewhere = nodes.elsewhere(id)
          if (elsewhere !== undefined) {
            const text = yield* nodes.peers.askOne(elsewhere.node, "record", elsewhere.id)
            return text === undefined ? yield* unknown : jsonText(text)
          }
          const own = yield* Effect.exit(detail(nodes.own(id)))
          if (Exit.isSuccess(own)) return jsonText(own.value)
          // A request's id does not say whose it was.
          const { answers } = yield* nodes.peers.askAll("record", id)
          for (const [, text] of answers) return jsonText(text)
          return yield* unknown
        })
      )
      .handle("clear", () =>
        clear.pipe(
          Effect.andThen(nodes.peers.askAll("clear records", "")),
          Effect.tap(logChange("the records of requests were cleared")),
          Effect.map(({ missing }) => ({ success: true, ...nodes.told(missing) }))
        ))
  })
)
