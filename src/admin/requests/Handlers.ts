/**
 * Records of requests at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Redacted from "effect/Redacted"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { apiId, respond } from "../../http/reply.ts"
import type { RequestRecord } from "../../requests/RequestRecord.ts"
import { Requests } from "../../requests/Requests.ts"
import { logChange } from "../changes.ts"
import { nodeName } from "../nodeName.ts"
import { AdminRequestsGroup } from "./Api.ts"
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

export const AdminRequestsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminRequestsGroup),
  "admin-requests",
  Effect.fnUntraced(function*(handlers) {
    const requests = yield* Requests
    const store = yield* ConfigStore
    const node = yield* nodeName
    return handlers
      .handle(
        "list",
        Effect.fnUntraced(function*({ query }) {
          const cursor = given(query.cursor)
          const before = cursor === undefined ? undefined : numberOf(cursor)
          if (cursor !== undefined && before === undefined) {
            return yield* invalidRequest("cursor is none that a list gave", "cursor")
          }
          const asked = query.limit === undefined || query.limit === "" ? defaultLimit : query.limit
          const limit = Math.min(mostItems, Math.max(1, Math.trunc(asked)))
          const { next, records } = requests.page(before, limit, fitting(query))
          const { enabled, limit: most, max_total_bytes } = store.unsafeCurrent().requests
          return {
            enabled,
            limit: most,
            ...requests.status(),
            max_total_bytes,
            items: records.map((record) => viewItem(record, node())),
            next_cursor: next === undefined ? null : idOf(next)
          }
        })
      )
      .handleRaw(
        "get",
        Effect.fnUntraced(function*({ endpoint, params }) {
          const number = numberOf(params.id)
          const record = (number === undefined ? undefined : requests.numbered(number)) ?? requests.named(params.id)
          if (record === undefined) return yield* unknown
          return respond(endpoint, viewDetail(record, node(), [Redacted.value(store.adminKey)]))
        })
      )
      .handle("clear", () =>
        Effect.sync(() => requests.clear()).pipe(
          Effect.andThen(logChange("the records of requests were cleared")),
          Effect.as({ success: true })
        ))
  })
)
