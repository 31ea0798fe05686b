/**
 * The servers of vendors that have addresses of their own: what of a contract such a server has elsewhere or otherwise.
 *
 * The one thing to know: a contract stays as it is. These facts change where it is asked, and the few fields that move with that.
 */
import { addressOfCloud, type CloudName, type clouds, type VendorAddress, type VendorPlace } from "./names.ts"
import { changedMembers } from "./shared/editedBody.ts"

/** A request as the contract says it, or as a server gets it. */
export interface Asked {
  /** Below the base URL, with its query. */
  readonly path: string
  readonly body: string
  readonly headers: { readonly [name: string]: string } | undefined
}

/** What is known of a request beside itself. */
interface AskedOf {
  /** The server's name of the model. */
  readonly model: string
  readonly isWhole: boolean
}

/** What a driver can do of which a server lacks the endpoint. */
export type Lacking = "countTokens" | "embed" | "listModels" | "relay"

/** What a server has otherwise than its contract says. */
export interface ServerFacts extends Pick<VendorAddress, "signing"> {
  /** A key is a bearer token, whatever the contract has. */
  readonly isBearer: boolean
  /** Where a completion is asked for; `undefined` for the contract's own path. */
  readonly address: ((asked: Asked, of: AskedOf) => Asked) | undefined
  /** The same for a count of tokens. */
  readonly count: ((asked: Asked) => Asked) | undefined
  readonly lacks: ReadonlyArray<Lacking>
}

type OwnFacts = Omit<ServerFacts, "signing">

const asContracted: OwnFacts = { isBearer: false, address: undefined, count: undefined, lacks: [] }

/** Claude's Messages by `InvokeModel`: the model is in the path, the version in the body, and a stream is another endpoint. */
const invokeModel: OwnFacts["address"] = ({ body, headers = {} }, { isWhole, model }) => {
  const { "anthropic-beta": betas, ...rest } = headers
  return {
    path: `/model/${encodeURIComponent(model)}/invoke${isWhole ? "" : "-with-response-stream"}`,
    body: changedMembers(body, ["model", "stream"], {
      anthropic_version: "bedrock-2023-05-31",
      ...(betas === undefined ? {} : { anthropic_beta: betas.split(",").map((beta) => beta.trim()) })
    }),
    headers: { ...rest, accept: isWhole ? "application/json" : "application/vnd.amazon.eventstream" }
  }
}

const vertexVersion = { anthropic_version: "vertex-2023-10-16" }

/** Claude's Messages at Vertex AI: the model is in the path, and the version in the body. */
const rawPredict: OwnFacts["address"] = ({ body, headers }, { isWhole, model }) => ({
  path: `/models/${encodeURIComponent(model).replaceAll("%40", "@")}:${isWhole ? "rawPredict" : "streamRawPredict"}`,
  body: changedMembers(body, ["model"], vertexVersion),
  headers
})

/** Vertex AI counts what the request itself says, without the envelope of the Gemini API. */
const ownCount: OwnFacts["count"] = ({ body, headers, path }) => ({
  path,
  body: changedMembers(body.slice("{\"generateContentRequest\":".length, -1), ["model"], {}),
  headers
})

const mantle: OwnFacts = { ...asContracted, lacks: ["embed", "relay"] }
const runtime: OwnFacts = { ...asContracted, isBearer: true, lacks: ["embed", "listModels", "relay"] }

/** What the server of each driver has of its own, by the vendor. */
const vendors: {
  readonly [Name in CloudName]: { readonly [Driver in keyof typeof clouds[Name]["servers"]]: OwnFacts }
} = {
  bedrock: { openai: mantle, responses: mantle, messages: { ...asContracted, lacks: ["listModels"] } },
  "bedrock-runtime": {
    openai: runtime,
    responses: runtime,
    messages: { ...asContracted, isBearer: true, address: invokeModel, lacks: ["countTokens", "listModels"] }
  },
  vertex: {
    generate: { ...asContracted, count: ownCount, lacks: ["embed", "listModels"] },
    messages: {
      isBearer: true,
      address: rawPredict,
      count: ({ body, headers }) => ({
        path: "/models/count-tokens:rawPredict",
        body: changedMembers(body, [], vertexVersion),
        headers
      }),
      lacks: ["listModels"]
    }
  },
  azure: { openai: asContracted, responses: asContracted }
}

/** The facts of a vendor's server; `undefined` for a driver that it has no server of. */
export const serverFacts = (name: CloudName, driver: string, place: VendorPlace): ServerFacts | undefined => {
  const servers: { readonly [driver: string]: OwnFacts } = vendors[name]
  const signing = addressOfCloud(name, driver, place)?.signing
  return Object.hasOwn(servers, driver) ? { ...servers[driver]!, signing } : undefined
}
