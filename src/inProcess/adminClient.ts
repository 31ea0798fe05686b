/**
 * A typed client for the admin API, from the same definition that the server is made of.
 */
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Redacted from "effect/Redacted"
import { AdminApi } from "../server/AdminApi.ts"

/** Where the gateway is, and as whom to call it. */
export interface AdminClientOptions {
  /** The gateway's address, with the path below which it is mounted if it is. */
  readonly baseUrl: string
  /** The admin key, or a JWT. */
  readonly credential: Redacted.Redacted<string> | string
}

/**
 * Makes the client: a method for each endpoint, by group, as in `client["admin-keys"].add({ payload: { key } })`.
 * A refusal fails with the gateway's own error.
 */
export const makeAdminClient = ({ baseUrl, credential }: AdminClientOptions) =>
  HttpApiClient.make(AdminApi, {
    baseUrl,
    transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(credential))
  })
