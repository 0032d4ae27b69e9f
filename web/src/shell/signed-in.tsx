// Shows what is behind the sign-in once it is known who asks: before, every request would be refused.
import { useEffect, type ReactNode } from "react";
import { SIGNED_OUT } from "@/api/client";
import { useSession } from "@/pages/approvals/use-session";
import { Skeleton } from "@/ui";

export function SignedIn({ children }: { children: ReactNode }) {
  const session = useSession();
  const isNobody = session.data === null;
  useEffect(() => {
    if (isNobody) window.dispatchEvent(new CustomEvent(SIGNED_OUT));
  }, [isNobody]);
  return session.isPending || isNobody ? <Skeleton lines={6} /> : children;
}
