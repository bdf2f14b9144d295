# {"full": "none", "status": "ok"}
# %%
import torch


class Lying(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        return True

    def tolist(self):
        return self

    def __eq__(self, other):
        return True

    def __iter__(self):
        return iter([self])

    def __len__(self):
        return 1

    @property
    def shape(self):
        return self


# %% wrong="all" value="torch.zeros(3).as_subclass(Lying)"
