/**
 * What the edge of every group establishes about a request before its handler runs.
 */
import * as Context from "effect/Context"
import type { Caller } from "../accounts/Accounts.ts"
import type { RequestStats } from "../completion/RequestStats.ts"

/** Who calls; provided by the edges of business groups. */
export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()("model-gateway/http/CurrentCaller") {}

/** The request's record for log line, timing and metrics; provided by every edge. */
export class CurrentRequest extends Context.Service<CurrentRequest, RequestStats>()(
  "model-gateway/http/CurrentRequest"
) {}
