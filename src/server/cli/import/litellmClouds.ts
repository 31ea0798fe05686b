/** Deployments at clouds: where an entry of LiteLLM's proxy says that one is, and by whose credential it is asked. */
import type { RawConfig } from "../../../config/json.ts"
import type { UpstreamProtocol } from "../../../contracts/drivers.ts"
import type { Fields } from "./Report.ts"

/** Reads a text of an entry. */
export type ReadText = (name: string) => string | undefined

/** A server by its place. */
export interface Place {
  readonly driver: UpstreamProtocol
  readonly model: string
  /** Empty for a cloud's own address. */
  readonly address: string
  /** The entry itself says the address. */
  readonly isOwn: boolean
  /** Fields of the upstream that tell it from others: a cloud's `vendor`, and those beside it. */
  readonly fields: RawConfig
}

/** The cloud's server of a model, or why it is left out. */
type ReadPlace = (model: string, plain: ReadText) => Pick<Place, "driver" | "fields" | "model"> | string

const bedrock: ReadPlace = (written, plain) => {
  const [, located, model = ""] = /^(?:(?:converse|invoke)\/)?(?:([a-z]{2}(?:-[a-z]+)+-\d)\/)?(.*)$/.exec(written) ?? []
  const region = plain("aws_region_name") ?? located
  if (!model.includes("anthropic.claude")) {
    return "Claude alone is served by InvokeModel: add other models of Bedrock by hand, by vendor bedrock"
  }
  return region === undefined
    ? "it has no aws_region_name: add it by hand, by vendor bedrock-runtime"
    : { driver: "messages", model, fields: { vendor: "bedrock-runtime", region } }
}

const vertex: ReadPlace = (model, plain) => {
  const [project, region] = [plain("vertex_project"), plain("vertex_location")]
  const driver = model.startsWith("claude-") ? "messages" : model.startsWith("gemini-") ? "generate" : undefined
  if (driver === undefined) return "Gemini and Claude alone are served by Vertex AI here"
  return project === undefined || region === undefined
    ? "it has no vertex_project and vertex_location: add it by hand, by vendor vertex"
    : { driver, model, fields: { vendor: "vertex", region, project } }
}

/** Clouds that have addresses of their own, by LiteLLM's names of them. */
export const cloudPlaces: ReadonlyMap<string, ReadPlace> = new Map([
  ["bedrock", bedrock],
  ["bedrock_converse", bedrock],
  ["vertex_ai", vertex],
  ["vertex_ai_beta", vertex]
])

/** The fields of a credential by LiteLLM's names of them. */
const credentialFields = {
  aws: {
    aws_access_key_id: "key",
    aws_secret_access_key: "secret",
    aws_profile_name: "profile",
    aws_role_name: "role",
    aws_session_name: "session",
    aws_web_identity_token: "web_identity_file",
    aws_external_id: "external_id",
    aws_sts_endpoint: "sts"
  },
  google: { vertex_credentials: "file" },
  entra: { tenant_id: "tenant", client_id: "client", client_secret: "secret" }
} as const

/** The source of an entry's tokens where it has no key; `undefined` for none. `secret` keeps references. */
export const credentialOf = (provider: string, params: Fields, secret: ReadText): RawConfig | undefined => {
  const from = provider === "azure" ? "entra" : provider.startsWith("vertex") ? "google" : "aws"
  if (from !== "entra" && !cloudPlaces.has(provider)) return undefined
  const isOfSession = params.peek(["aws_session_token"])["aws_session_token"] !== null
  const read = Object.entries(credentialFields[from]).flatMap(([name, field]) => {
    const text = secret(name)
    return text === undefined || isOfSession && (field === "key" || field === "secret") ? [] : [[field, text] as const]
  })
  if (from === "entra" && read.length < 3) return undefined
  const contents = read.find(([field, text]) => field === "file" && text.startsWith("{"))
  if (contents !== undefined) {
    params.report.leftOut(params.at("vertex_credentials"), "the account names a file that has them: credential.file")
    return undefined
  }
  if (from === "google" && read.length === 0) {
    params.report.changed(params.place, "the metadata server issues its tokens, unless the account has credential.file")
  }
  return { from, ...Object.fromEntries(read) }
}
