/**
 * The part of the admin API that runs the gateway, as layers: its groups' handlers and edges.
 */
import * as Layer from "effect/Layer"
import { AccountTests } from "./accounts/AccountTests.ts"
import { AdminAccountsHandlers } from "./accounts/Handlers.ts"
import { AdminAuthHandlers } from "./auth/Handlers.ts"
import { AdminCapturesHandlers } from "./captures/Handlers.ts"
import { AdminConfigHandlers } from "./config/Handlers.ts"
import { AdminEdge, AdminOpenEdge } from "./edges.ts"
import { AdminKeysHandlers } from "./keys/Handlers.ts"
import { AdminSamplesHandlers } from "./samples/Handlers.ts"
import { AdminSelfTestHandlers } from "./selfTest/Handlers.ts"
import { AdminSettingsHandlers } from "./settings/Handlers.ts"

export const AdminHandlers = Layer.mergeAll(
  AdminAuthHandlers,
  AdminConfigHandlers,
  AdminSettingsHandlers,
  AdminKeysHandlers,
  AdminAccountsHandlers.pipe(Layer.provide(AccountTests.layer)),
  AdminSelfTestHandlers,
  AdminCapturesHandlers,
  AdminSamplesHandlers
)

export const AdminEdges = Layer.mergeAll(AdminEdge.layer, AdminOpenEdge.layer)
