"""The accounts of a group."""

from .money import Money
from .split import allocate


class Book:
    """Who has paid for whom; a positive balance is money to get back."""

    def __init__(self, members):
        if len(set(members)) != len(members):
            raise ValueError("every member needs a name of its own")
        self._balance = {name: Money(0) for name in members}
        self.entries = []

    def spend(self, payer, amount, shares=None, note=""):
        """`payer` paid `amount` for the members in `shares` ({name: weight}).

        A negative amount is a refund that `payer` received for the group.
        """
        shares = shares or {name: 1 for name in self._balance}
        for name in (payer, *shares):
            if name not in self._balance:
                raise KeyError(f"{name!r} is not in this group")
        parts = allocate(amount, list(shares.values()))
        self._balance[payer] += amount
        for name, part in zip(shares, parts):
            self._balance[name] -= part
        self.entries.append((payer, amount, dict(zip(shares, parts)), note))

    def balance(self, name):
        return self._balance[name]

    def is_even(self):
        """Do all balances add up to nothing? They always should."""
        return not sum((money.cents for money in self._balance.values()))

    def settle(self):
        """Return (debtor, creditor, amount) that bring all balances to zero."""
        plus = sorted((m.cents, n) for n, m in self._balance.items() if m.cents > 0)
        minus = sorted((-m.cents, n) for n, m in self._balance.items() if m.cents < 0)
        payments = []
        while plus and minus:
            (gets, creditor), (owes, debtor) = plus.pop(), minus.pop()
            cents = min(gets, owes)
            payments.append((debtor, creditor, Money(cents)))
            if gets > cents:
                plus.append((gets - cents, creditor))
            if owes > cents:
                minus.append((owes - cents, debtor))
        return payments
