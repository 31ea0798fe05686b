/**
 * A driver of a small protocol of its own: `POST {base}/say` with a text, and a reply as events whose data are words. The word `end` ends
 * it.
 */
import type { ChunkDecoder } from "../../../src/contracts/shared/ChunkDecoder.ts"
import { errorFacts, isError } from "../../../src/contracts/shared/errorFacts.ts"
import { UpstreamFinish, UpstreamText } from "../../../src/domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../../src/domain/UpstreamFailure.ts"
import type { Exchanges } from "../../../src/upstream/Exchange.ts"
import { makeServerClient } from "../../../src/upstream/server/ServerClient.ts"
import type { ServerOptions } from "../../../src/upstream/server/ServerOptions.ts"
import type { Driver } from "../../../src/upstream/Upstream.ts"

/** Decodes the words of a reply. */
export const toyDecoder = (): ChunkDecoder => {
  let done = false
  let failure: UpstreamFailure | undefined
  const push: ChunkDecoder["push"] = ({ data }, out) => {
    if (data === "end") done = true
    else if (!done) out.push(UpstreamText(data))
  }
  return {
    push,
    pushUnterminated: push,
    pushWhole: () => undefined,
    end: (out) => {
      if (done) out.push(UpstreamFinish("stop", undefined))
      else failure = new UpstreamFailure({ phase: "stream", kind: "truncated" })
    },
    failure: () => failure,
    finishing: () => done,
    withdrawn: () => false,
    done: () => done
  }
}

/** Makes the driver. */
export const makeToyDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver => {
  const names = new Map(options.models.map(({ id, model }) => [id, model]))
  const client = makeServerClient(exchanges, {
    // The row of the table makes it the name of a protocol.
    name: "toy" as "openai",
    upstream: options.upstream,
    baseUrl: options.baseUrl,
    limits: options.limits,
    headers: {},
    credential: (token) => ({ "x-toy-key": token }),
    credentialHeader: options.credentialHeader,
    errorFacts,
    isError
  })
  return {
    name: "toy",
    isAnonymous: false,
    sends: {},
    models: options.furtherModels,
    verify: client.verify("/say"),
    complete: (request) =>
      client.complete(request, function*({ conversation, model: { id } }) {
        const said = conversation.turns.flatMap(({ parts }) =>
          parts.flatMap((part) => part._tag === "Text" ? [part.text] : [])
        )
        const name = names.get(id) ?? id
        return {
          model: { id, name },
          path: "/say",
          body: JSON.stringify({ model: name, said: said.at(-1) ?? "" }),
          id: "toy",
          chunks: toyDecoder()
        }
      })
  }
}
