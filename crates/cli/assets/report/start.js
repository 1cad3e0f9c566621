startPage();
