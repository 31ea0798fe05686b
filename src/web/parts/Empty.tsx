/**
 * What stands in place of a list without anything: what it is for, and the one button that begins it.
 */
import type { ComponentChildren } from "preact"
import { ChangeButton } from "./configuration.tsx"

export const Empty = ({ action, children, onAction = () => {} }: {
  /** What it is for, in one line. */
  readonly children: ComponentChildren
  readonly action?: string | undefined
  readonly onAction?: () => void
}) => (
  <div class="nothing">
    <p>{children}</p>
    {action !== undefined && <ChangeButton onClick={onAction}>{action}</ChangeButton>}
  </div>
)
