/**
 * The whole contract: every group of the gateway in one `HttpApi`. Importable without the server.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import { apiId } from "../http/reply.ts"
import { ChatGroup } from "../styles/chat/Api.ts"
import { GenerateGroup } from "../styles/generate/Api.ts"
import { MessagesGroup } from "../styles/messages/Api.ts"
import { ModelsGroup } from "../styles/models/Api.ts"
import { HealthGroup } from "./health.ts"

/** The gateway's API. */
export class GatewayApi
  extends HttpApi.make(apiId).add(ChatGroup, MessagesGroup, GenerateGroup, ModelsGroup, HealthGroup)
{}
