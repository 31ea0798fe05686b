/**
 * The toy contract, whose form is that of no vendor. A request is `{m, t, s}`: the model, turns `[role, text]` with roles by number, and
 * whether the reply is streamed. A reply is one JSON list an event: `["say", text]`, and `["end", reason, prompt, completion]`. A whole reply
 * is `{say, end: [reason, prompt, completion]}`. An error is `{wrong}`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ContractFacts, ConversationContract } from "../../../src/contracts/Contract.ts"
import type { FamilyName } from "../../../src/contracts/names.ts"
import type { ChunkDecoder } from "../../../src/contracts/shared/ChunkDecoder.ts"
import { codeOfStatus, errorShape } from "../../../src/contracts/shared/errorShapes.ts"
import { noBounds, usualCaching } from "../../../src/contracts/shared/facts.ts"
import type { FrameRenderer } from "../../../src/contracts/shared/FrameRenderer.ts"
import { asCount, asString, parseJson } from "../../../src/contracts/shared/json.ts"
import { type Limits, wordLimit } from "../../../src/contracts/shared/limits.ts"
import { familyOf } from "../../../src/contracts/shared/requestSchema.ts"
import { repairsOf } from "../../../src/contracts/shared/validHistory.ts"
import { type Conversation, plainConversation, type Role, Text, type Turn } from "../../../src/domain/Conversation.ts"
import { type GatewayError, gatewayError } from "../../../src/domain/GatewayError.ts"
import { type Reply, replyText } from "../../../src/domain/Reply.ts"
import type { FinishReason, Usage } from "../../../src/domain/ReplyEvent.ts"
import type { Cooperative } from "../../../src/domain/stream/cooperative.ts"
import { type UpstreamEvent, UpstreamFinish, UpstreamText, UpstreamUsage } from "../../../src/domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../../src/domain/UpstreamFailure.ts"
import { toyName } from "./names.ts"

/** Its row makes it one of the names that the types have. */
const id = toyName as FamilyName

const roles: ReadonlyArray<Role> = ["system", "user", "assistant"]

export const ToyRequest = Schema.Struct({
  m: Schema.NonEmptyString,
  t: Schema.Array(Schema.Tuple([Schema.Literals([0, 1, 2]), Schema.String])),
  s: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "ToyRequest" })

export const ToyReply = Schema.Struct({
  say: Schema.String,
  end: Schema.Tuple([Schema.String, Schema.Int, Schema.Int])
}).annotate({ identifier: "ToyReply" })

export const toyErrors = errorShape(Schema.Struct({ wrong: Schema.String }).annotate({ identifier: "ToyError" }), {
  render: ({ message }) => ({ wrong: message }),
  revive: ({ wrong }, status) => gatewayError(codeOfStatus(status), wrong)
})

const finishNames: Readonly<Record<FinishReason, string>> = {
  stop: "done",
  stop_sequence: "done",
  tool_calls: "calls",
  length: "long",
  content_filter: "hidden"
}

const limits: Limits = {
  contract: id,
  callIds: wordLimit(40, ""),
  toolNames: wordLimit(64, "a-z"),
  stopSequences: 0,
  texts: undefined,
  pictures: [],
  exclusive: [],
  needsProperties: false,
  history: { joinsTurns: false, begins: "anyhow", uniqueIds: "in a turn", refusedTexts: "none" }
}

const facts: ContractFacts = {
  vendor: "openai",
  caching: usualCaching,
  finishNames,
  failureName: undefined,
  bindsEverySchema: false,
  words: {
    turns: "t",
    outputLimit: "n",
    limitPath: () => "n",
    samplingPath: (_, name) => name,
    toolChoice: "tool_choice",
    schema: "schema",
    paths: new Map()
  },
  limits,
  repairs: repairsOf(limits),
  shows: {},
  leavesZeroOut: false,
  keptReasoning: () => undefined,
  wantsThinking: false,
  elsewhere: () => undefined,
  declaredElsewhere: ({ tools }) => tools,
  callBounds: noBounds(id),
  mostChoices: 1
}

const textOf = ({ parts }: Turn): string => parts.flatMap((part) => part._tag === "Text" ? [part.text] : []).join("")

const readReply = (): ChunkDecoder => {
  let done = false
  let failure: UpstreamFailure | undefined
  const end = ([reason, prompt, completion]: ReadonlyArray<unknown>, out: Array<UpstreamEvent>) => {
    const promptTokens = asCount(prompt) ?? 0
    out.push(UpstreamUsage({ promptTokens, completionTokens: asCount(completion) ?? 0 }))
    out.push(UpstreamFinish(reason === finishNames.length ? "length" : "stop"))
    done = true
  }
  const push: ChunkDecoder["push"] = ({ data }, out) => {
    const event = parseJson(data)
    if (!Array.isArray(event)) failure = new UpstreamFailure({ phase: "stream", kind: "malformed" })
    else if (event[0] === "say") out.push(UpstreamText(asString(event[1]) ?? ""))
    else if (event[0] === "end") end(event.slice(1), out)
  }
  return {
    push,
    pushUnterminated: push,
    pushWhole: (body, out) => {
      const reply = parseJson(body) as typeof ToyReply.Type
      out.push(UpstreamText(reply.say))
      end(reply.end, out)
    },
    end: () => {
      if (!done) failure ??= new UpstreamFailure({ phase: "stream", kind: "truncated" })
    },
    failure: () => failure,
    finishing: () => done,
    withdrawn: () => false,
    done: () => done
  }
}

const endOf = (finish: FinishReason, { completionTokens, promptTokens }: Usage): typeof ToyReply.Type["end"] => [
  finishNames[finish],
  promptTokens,
  completionTokens
]

const failureFrame = (error: GatewayError): string => `data: ${toyErrors.text(error)}\n\n`

const frames = (): FrameRenderer => {
  let usage: Usage | undefined
  const frame = (...event: ReadonlyArray<unknown>) => `data: ${JSON.stringify(event)}\n\n`
  return {
    keepAlive: () => ": wait\n\n",
    failure: failureFrame,
    frames: {
      push: (event, out) => {
        if (event._tag === "TextDelta") out.push(frame("say", event.text))
        else if (event._tag === "UsageReported") usage = event.usage
        else if (event._tag === "Finish") out.push(frame("end", ...endOf(event.reason, usage!)))
      },
      end: () => {}
    }
  }
}

export const toy = {
  id,
  facts,
  request: familyOf(ToyRequest, { name: toyName, vendor: id, open: false, fields: {} }),
  readRequest: function*(body: typeof ToyRequest.Type): Cooperative<Result.Result<Conversation, GatewayError>> {
    return Result.succeed({
      ...plainConversation,
      turns: body.t.map(([role, text]) => ({ role: roles[role]!, parts: [Text(text)] }))
    })
  },
  writeRequest: function*(model: string, { turns }: Conversation, _: undefined, isWhole: boolean): Cooperative<string> {
    return JSON.stringify({ m: model, t: turns.map((turn) => [roles.indexOf(turn.role), textOf(turn)]), s: !isWhole })
  },
  readReply,
  writeReply: () => ({
    whole: (reply: Reply) => ({ say: replyText(reply), end: endOf(reply.finish, reply.usage) }),
    frames
  }),
  writeFailure: failureFrame,
  readError: (body) => {
    const message = asString((body as { readonly wrong?: unknown } | undefined)?.wrong)
    return message === undefined ? {} : { message }
  },
  isError: ({ wrong }) => wrong !== undefined
} satisfies ConversationContract
