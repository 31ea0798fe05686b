/**
 * The whole contract: every group of the gateway in one `HttpApi`. Importable without the server.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import { AdminAccountsGroup } from "../admin/accounts/Api.ts"
import { AdminAuthGroup } from "../admin/auth/Api.ts"
import { AdminCapturesGroup } from "../admin/captures/Api.ts"
import { AdminConfigGroup } from "../admin/config/Api.ts"
import { AdminHostGroup } from "../admin/host/Api.ts"
import { AdminKeysGroup } from "../admin/keys/Api.ts"
import { AdminSamplesGroup } from "../admin/samples/Api.ts"
import { AdminSelfTestGroup } from "../admin/selfTest/Api.ts"
import { AdminSettingsGroup } from "../admin/settings/Api.ts"
import { AdminVersionGroup } from "../admin/version/Api.ts"
import { apiId } from "../http/reply.ts"
import { ChatGroup } from "../styles/chat/Api.ts"
import { EmbeddingsGroup } from "../styles/embeddings/Api.ts"
import { GenerateGroup } from "../styles/generate/Api.ts"
import { MessagesGroup } from "../styles/messages/Api.ts"
import { ModelsGroup } from "../styles/models/Api.ts"
import { ResponsesGroup } from "../styles/responses/Api.ts"
import { HealthGroup } from "./healthApi.ts"
import { MetricsGroup } from "./observability/metricsApi.ts"

/** The gateway's API. */
export class GatewayApi extends HttpApi.make(apiId).add(
  ChatGroup,
  ResponsesGroup,
  EmbeddingsGroup,
  MessagesGroup,
  GenerateGroup,
  ModelsGroup,
  HealthGroup,
  MetricsGroup,
  AdminAuthGroup,
  AdminConfigGroup,
  AdminSettingsGroup,
  AdminKeysGroup,
  AdminAccountsGroup,
  AdminSelfTestGroup,
  AdminCapturesGroup,
  AdminSamplesGroup,
  AdminHostGroup,
  AdminVersionGroup
) {}
