/**
 * The control endpoint of the reference upstream: faults and replies to order, tokens to end, and the report, over HTTP. Its
 * paths are outside the protocol's.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ServerResponse } from "node:http"
import { callNames } from "../contracts/session/readRequest.ts"
import type { Report } from "./CallLog.ts"
import type { Provider } from "./Provider.ts"
import { faultFits, faultNames, faultTable, usualCall } from "./provider/faults.ts"
import { scriptTable } from "./provider/script.ts"

interface ControlRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly body: string
}

const optionalCount = Schema.optionalKey(Schema.Int)

const order = {
  call: Schema.optionalKey(Schema.Literals(callNames)),
  account: Schema.optionalKey(Schema.String),
  containing: Schema.optionalKey(Schema.String),
  times: optionalCount
}

const FaultBody = Schema.Struct({
  ...order,
  name: Schema.Literals(faultNames),
  after: optionalCount,
  status: optionalCount,
  retryAfter: optionalCount,
  code: optionalCount,
  bizCode: optionalCount,
  millis: optionalCount,
  bytes: optionalCount,
  message: Schema.optionalKey(Schema.String),
  reason: Schema.optionalKey(Schema.String)
})

const ReplyBody = Schema.Union([
  Schema.Struct({ ...order, script: Schema.String }),
  Schema.Struct({ ...order, raw: Schema.String, chunk: optionalCount })
])

const AccountBody = Schema.Struct({ account: Schema.optionalKey(Schema.String) })
const CutBody = Schema.Struct({ containing: Schema.optionalKey(Schema.String) })
const SuspendBody = Schema.Struct({ account: Schema.String, suspended: Schema.Boolean })

const readFault = Schema.decodeUnknownOption(Schema.fromJsonString(FaultBody))
const readReply = Schema.decodeUnknownOption(Schema.fromJsonString(ReplyBody))
const readAccount = Schema.decodeUnknownOption(Schema.fromJsonString(AccountBody))
const readCut = Schema.decodeUnknownOption(Schema.fromJsonString(CutBody))
const readSuspend = Schema.decodeUnknownOption(Schema.fromJsonString(SuspendBody))

const send = (response: ServerResponse, status: number, value: unknown): void => {
  const body = JSON.stringify(value)
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
  response.end(body)
}

const take = <A>(response: ServerResponse, body: Option.Option<A>, f: (body: A) => void): void => {
  if (Option.isNone(body)) {
    send(response, 400, { error: "the body does not have the form of this order" })
    return
  }
  f(body.value)
  send(response, 200, {})
}

/** Whether every `name=number` of the query holds for the report. */
const holds = (report: Report, query: string): boolean =>
  [...new URLSearchParams(query)].every(([name, value]) =>
    Object.entries(report).some(([key, count]) => key === name && count === Number(value))
  )

/** Answers with the report once the query holds for it: `GET /control/until?open=0`. */
const sendOnce = (provider: Provider, query: string, response: ServerResponse): void => {
  const look = () => {
    const report = provider.report()
    if (!holds(report, query)) return
    stop()
    send(response, 200, report)
  }
  const stop = provider.onChange(look)
  response.on("close", stop)
  look()
}

/** Answers a control request. */
export const handleControl = (provider: Provider, request: ControlRequest, response: ServerResponse): void => {
  switch (`${request.method} ${request.path}`) {
    case "GET /control/report":
      return send(response, 200, provider.report())
    case "GET /control/until":
      return sendOnce(provider, request.query, response)
    case "GET /control/faults":
      return send(response, 200, faultTable)
    case "GET /control/script":
      return send(response, 200, scriptTable.map(({ syntax, about }) => ({ syntax, about })))
    case "POST /control/fail":
      return take(
        response,
        readFault(request.body).pipe(
          Option.map((fault) => ({ ...fault, call: fault.call ?? usualCall(fault.name) })),
          Option.filter(({ call, name }) => faultFits(name, call))
        ),
        (fault) => provider.fail(fault)
      )
    case "POST /control/reply":
      return take(response, readReply(request.body), (reply) => provider.reply(reply))
    case "POST /control/revoke":
      return take(response, readAccount(request.body || "{}"), ({ account }) => provider.revoke(account))
    case "POST /control/cut":
      return take(response, readCut(request.body || "{}"), ({ containing = "" }) => provider.cut(containing))
    case "POST /control/suspend":
      return take(response, readSuspend(request.body), ({ account, suspended }) => provider.suspend(account, suspended))
    case "POST /control/forget":
      provider.forget()
      return send(response, 200, {})
    default:
      return send(response, 404, { error: "no such control" })
  }
}
