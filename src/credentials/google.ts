/** The source `google`: a file of credentials (service account, user, workload identity federation), or the metadata server. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { importPKCS8, SignJWT } from "jose"
import type { credentialKinds } from "../config/document.ts"
import { readRegularFile } from "../config/regularFile.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { type IssuedToken, longestToken, sourceFailed, tokenIn, type TokenMaker } from "./CredentialSource.ts"
import { answerOf, formTo, isPrivate, issueBy, nearTo } from "./tokenServers.ts"

const kind = "google"
const defaultScope = "https://www.googleapis.com/auth/cloud-platform"
const vendorsServer = "https://oauth2.googleapis.com/token"
const tokenServer = "the token server"

/** Seconds that an assertion is valid. */
const assertionLife = 3_600

const ServiceAccount = Schema.Struct({
  type: Schema.Literal("service_account"),
  client_email: Schema.String,
  private_key: Schema.String,
  private_key_id: Schema.optionalKey(Schema.String),
  token_uri: Schema.optionalKey(Schema.String)
})

const AuthorizedUser = Schema.Struct({
  type: Schema.Literal("authorized_user"),
  client_id: Schema.String,
  client_secret: Schema.String,
  refresh_token: Schema.String,
  token_uri: Schema.optionalKey(Schema.String)
})

const ExternalAccount = Schema.Struct({
  type: Schema.Literal("external_account"),
  audience: Schema.String,
  subject_token_type: Schema.String,
  token_url: Schema.String,
  service_account_impersonation_url: Schema.optionalKey(Schema.String),
  credential_source: Schema.Struct({
    file: Schema.optionalKey(Schema.String),
    url: Schema.optionalKey(Schema.String),
    headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    format: Schema.optionalKey(Schema.Struct({
      type: Schema.String,
      subject_token_field_name: Schema.optionalKey(Schema.String)
    }))
  })
})

const decodeFile = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Union([ServiceAccount, AuthorizedUser, ExternalAccount]))
)
const decodeFields = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))
const decodeImpersonated = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Struct({ accessToken: Schema.String, expireTime: Schema.String }))
)

type Issued = Effect.Effect<IssuedToken, UpstreamFailure>

const failed = (step: string, advice?: string) => Effect.fail(sourceFailed(kind, step, advice))

const read = (what: string, path: string): Effect.Effect<string, UpstreamFailure> =>
  readRegularFile(path, longestToken).pipe(
    Effect.mapBoth({
      onFailure: (error) => sourceFailed(kind, `${what} cannot be read: ${error.kind}`, error.message),
      onSuccess: (bytes) => bytes.toString("utf8")
    })
  )

/** Runs `then` with addresses that secrets may go to. */
const onlyPrivate = (urls: ReadonlyArray<string>, then: () => Issued): Issued =>
  urls.every(isPrivate) ? Effect.suspend(then) : failed("the file names an address without TLS")

const byServiceAccount = (
  { client_email, private_key, private_key_id, token_uri = vendorsServer }: typeof ServiceAccount.Type,
  scope: string
): Issued =>
  onlyPrivate([token_uri], () =>
    Effect.gen(function*() {
      const now = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
      const assertion = yield* Effect.tryPromise({
        try: async () =>
          new SignJWT({ scope })
            .setProtectedHeader({
              alg: "RS256",
              typ: "JWT",
              ...(private_key_id === undefined ? {} : { kid: private_key_id })
            })
            .setIssuer(client_email)
            .setAudience(token_uri)
            .setIssuedAt(now)
            .setExpirationTime(now + assertionLife)
            .sign(await importPKCS8(private_key, "RS256")),
        catch: () => sourceFailed(kind, "the private key of the file cannot be read")
      })
      const grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer"
      return yield* issueBy(kind, tokenServer, formTo(token_uri, { grant_type, assertion }))
    }))

const byUser = (
  { client_id, client_secret, refresh_token, token_uri = vendorsServer }: typeof AuthorizedUser.Type
): Issued =>
  onlyPrivate([token_uri], () =>
    issueBy(
      kind,
      tokenServer,
      formTo(token_uri, { grant_type: "refresh_token", client_id, client_secret, refresh_token })
    ))

/** The token of the workload itself. */
const subjectToken = Effect.fnUntraced(function*(
  { file, format, headers = {}, url }: typeof ExternalAccount.Type["credential_source"]
): Effect.fn.Return<string, UpstreamFailure> {
  const text = file !== undefined
    ? yield* read("the file of the subject's token", file)
    : url !== undefined && URL.canParse(url)
    ? (yield* answerOf(kind, "the server of the subject's token", nearTo(url, headers))).text
    : yield* failed("the file names no subject's token")
  const fields = format?.type === "json" ? decodeFields(text) : undefined
  const found = fields === undefined
    ? text
    : Result.isSuccess(fields)
    ? fields.success[format?.subject_token_field_name ?? ""]
    : undefined
  const token = typeof found === "string" ? tokenIn(found) : undefined
  return token ?? (yield* failed("the subject's token has another form"))
})

/** Exchanges a token for that of a service account. */
const impersonated = Effect.fnUntraced(function*(
  url: string,
  token: string,
  scope: string
): Effect.fn.Return<IssuedToken, UpstreamFailure> {
  const server = "the server of the service account"
  const { date, text } = yield* answerOf(kind, server, {
    ...formTo(url, {}),
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ scope: scope.split(" ") })
  })
  const decoded = decodeImpersonated(text)
  if (Result.isFailure(decoded)) return yield* failed(`${server} answered without a token`)
  const { accessToken, expireTime } = decoded.success
  const lives = Date.parse(expireTime) - (date ?? (yield* Clock.currentTimeMillis))
  const issued = tokenIn(accessToken)
  if (issued === undefined || Number.isNaN(lives)) return yield* failed(`${server} answered without a token`)
  return { token: issued, lives: Math.max(1_000, lives), renewAfter: undefined }
})

const byFederation = (
  { audience, credential_source, service_account_impersonation_url: account, subject_token_type, token_url }:
    typeof ExternalAccount.Type,
  scope: string
): Issued =>
  onlyPrivate([token_url, ...(account === undefined ? [] : [account])], () =>
    Effect.gen(function*() {
      const subject_token = yield* subjectToken(credential_source)
      const issued = yield* issueBy(
        kind,
        tokenServer,
        formTo(token_url, {
          grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
          requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
          audience,
          scope: account === undefined ? scope : defaultScope,
          subject_token_type,
          subject_token
        })
      )
      return account === undefined ? issued : yield* impersonated(account, issued.token, scope)
    }))

const metadataServer = "the metadata server"

/** Asks the metadata server, whose host Google's libraries take from `GCE_METADATA_HOST`. */
const metadata = (place: string) =>
  nearTo(
    `http://${process.env["GCE_METADATA_HOST"] || "metadata.google.internal"}/computeMetadata/v1/instance/` +
      `service-accounts/default/${place}`,
    { "metadata-flavor": "Google" }
  )

/** Issues tokens of Google. Files are read at each issue. */
export const googleTokens = ({ file, scope = defaultScope }: typeof credentialKinds["google"]["Type"]): TokenMaker => {
  let identity = file ?? metadataServer
  const byFile = (path: string): Issued =>
    Effect.flatMap(read("the file", path), (text) => {
      const decoded = decodeFile(text)
      if (Result.isFailure(decoded)) {
        return failed("the file is of no service account, user or external account", path)
      }
      const settings = decoded.success
      switch (settings.type) {
        case "service_account":
          identity = settings.client_email
          return byServiceAccount(settings, scope)
        case "authorized_user":
          identity = settings.client_id
          return byUser(settings)
        case "external_account":
          identity = settings.service_account_impersonation_url?.match(/([^/]+@[^/:]+):/)?.[1] ?? settings.audience
          return byFederation(settings, scope)
      }
    })
  const byMetadata: Issued = Effect.gen(function*() {
    const query = new URLSearchParams({ scopes: scope.replaceAll(" ", ",") })
    const issued = yield* issueBy(kind, metadataServer, metadata(`token?${query}`))
    const email = yield* Effect.option(answerOf(kind, metadataServer, metadata("email")))
    if (email._tag === "Some") identity = tokenIn(email.value.text) ?? identity
    return issued
  })
  return {
    kind,
    identity: () => identity,
    isOfNode: false,
    sends: "bearer",
    issue: file === undefined ? byMetadata : byFile(file)
  }
}
