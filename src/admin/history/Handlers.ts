/**
 * Serves the history of admin changes.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given } from "../../domain/givenText.ts"
import { formatTimestamp, parseTimestamp } from "../../domain/time.ts"
import { positionAt } from "../../usage/changes.ts"
import { UsageStore } from "../../usage/UsageStore.ts"
import { clamp } from "../contract.ts"
import { adminHandlers, respondInSlices } from "../handlers.ts"
import { AdminChangesGroup } from "./Api.ts"
import { ChangeLog } from "./ChangeLog.ts"

const defaultLimit = 50
const mostListed = 200

/** The position that `before` names: a change's id, or the first one of a time. */
const readBefore = (text: string | undefined): Result.Result<number, GatewayError> => {
  const named = given(text)
  if (named === undefined) return Result.succeed(Number.MAX_SAFE_INTEGER)
  if (/^\d{1,16}$/.test(named)) return Result.succeed(Math.min(Number(named), Number.MAX_SAFE_INTEGER))
  const time = parseTimestamp(named)
  return time === undefined
    ? Result.fail(invalidRequest("before must be the id of a change or an RFC 3339 time", "before"))
    : Result.succeed(positionAt(time))
}

export const AdminChangesHandlers = adminHandlers(AdminChangesGroup, function*() {
  const log = yield* ChangeLog
  const usage = yield* UsageStore
  return {
    list: Effect.fnUntraced(function*({ endpoint, query }) {
      const before = yield* Effect.fromResult(readBefore(query.before))
      const limit = clamp(query.limit, defaultLimit, mostListed)
      // One more than asked for shows whether there is a next page.
      const found = yield* log.read(before, limit + 1)
      const shown = found.slice(0, limit)
      return yield* respondInSlices(endpoint, {
        changes: shown.map(({ change: { at, ...change }, position }) => ({
          id: String(position),
          at: formatTimestamp(at),
          ...change
        })),
        next: found.length > limit ? String(shown.at(-1)!.position) : null,
        store: yield* usage.status
      })
    })
  }
})
