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
import { namesOf } from "../../../src/upstream/server/serverDriver.ts"
import { type ServerOptions, settingsOf } from "../../../src/upstream/server/ServerOptions.ts"
import { type Driver, sendsNothing } from "../../../src/upstream/Upstream.ts"

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
  const settings = settingsOf(options)
  const nameOf = namesOf(settings)
  const client = makeServerClient(exchanges, settings, {
    // The row of the table makes it the name of a protocol.
    contract: { id: "toy" as "openai", readError: errorFacts, isError },
    headers: {},
    credential: (token) => ({ "x-toy-key": token }),
    versionPrefix: undefined
  })
  return {
    name: "toy",
    contract: undefined,
    isAnonymous: false,
    sends: sendsNothing,
    models: settings.furtherModels,
    secrets: client.secrets,
    capabilities: {},
    verify: client.verify("/say"),
    complete: (request) =>
      client.complete(request, function*({ conversation, model }) {
        const said = conversation.turns.flatMap(({ parts }) =>
          parts.flatMap((part) => part._tag === "Text" ? [part.text] : [])
        )
        const asked = nameOf(model)
        return {
          model: asked,
          path: "/say",
          body: JSON.stringify({ model: asked.name, said: said.at(-1) ?? "" }),
          headers: undefined,
          id: "toy",
          chunks: toyDecoder()
        }
      })
  }
}
